# Sourced by the scripts of this folder: mpi N COMMAND... runs N ranks of a command on this machine. Exits with 77 if Open MPI or the build's
# plug-in is missing.
command -v mpirun >/dev/null || { echo "skipped, there is no mpirun" && exit 77; }
mpirun --version 2>/dev/null | grep -q 'Open MPI' || { echo "skipped, mpirun is not Open MPI's" && exit 77; }

mpi() {
    local ranks=$1 root=()
    shift
    [[ $(id -u) != 0 ]] || root=(--allow-run-as-root)
    # hwloc's plug-ins search for cards for seconds; a run that hangs is a failure
    HWLOC_COMPONENTS=-opencl,-rsmi,-nvml,-gl timeout -k 10 300 mpirun "${root[@]}" --bind-to none --oversubscribe -n "$ranks" "$@"
}
