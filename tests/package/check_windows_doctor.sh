#!/usr/bin/env bash
# What `cleat doctor`, `devices`, `plan`, `monitor` and `passport` say on Windows, under wine with the PoCL of this machine: no words of Linux.
#   check_windows_doctor.sh CLEAT_EXE WORK [BUILD]
#     WORK: a folder to be replaced; BUILD: a built tree for Linux with CLEAT_VIRTUAL_CARDS, whose NVIDIA card and a stand-in for nvml.dll are used
# Exit code 77: the cross compiler or wine is not installed.
set -euo pipefail

top=$(cd "$(dirname "$0")/../.." && pwd)
compiler=x86_64-w64-mingw32-gcc-posix wine=/usr/lib/wine/wine64
for tool in "$compiler" "$wine"; do
    command -v "$tool" >/dev/null || { echo "skipped: $tool is not installed" && exit 77; }
done
program=$(realpath "$1")
rm -rf "$2"
mkdir -p "$2"
work=$(realpath "$2")
cards=${3:+$(realpath "$3")/virtual_card/}
cd "$work"
export WINEPREFIX=$work/wine WINEDEBUG=-all LC_ALL=C.UTF-8 base='mscoree,mshtml='
trap '/usr/lib/wine/wineserver64 -k || true' EXIT
mkdir wine
/usr/lib/wine/wineserver64 -p # else wine forgets the card below
faults=0
linux='apt-get|dnf |pacman|/etc/|/dev/|/proc|/sys/|render|LD_LIBRARY_PATH|\.so|\.icd|sudo|dmesg|modprobe|Linux|docker'

# run NAME CODE WORDS...: the output is in NAME.log; it must end with this exit code, and have no word of Linux.
run() {
    local name=$1 code=$2 found=0
    shift 2
    WINEDLLOVERRIDES="$base${overrides:+;$overrides}" timeout 300 "$wine" "$program" "$@" >"$name.log" 2>&1 || found=$?
    [[ $found == "$code" ]] || fault "$name: exit code $found instead of $code"
    ! grep -nE "$linux" "$name.log" || fault "$name: words of Linux"
}

fault() {
    echo "FAILED: $*"
    faults=$((faults + 1))
}

# has NAME TEXT...: NAME.log has each of the texts.
has() {
    local name=$1 text
    for text in "${@:2}"; do grep -qF -- "$text" "$name.log" || fault "$name: no '$text'"; done
}

registry() {
    "$wine" reg "$1" 'HKLM\SOFTWARE\Khronos\OpenCL\Vendors' /v "$2" "${@:3}" /f >/dev/null 2>&1
}

# The machine.
run doctor 0 doctor
has doctor 'Windows' ', build ' '(GlobalMemoryStatusEx)' 'MPI, which cleat does not use on Windows' 'correct results'
run json 0 doctor --json
python3 -c 'import json; assert json.loads(open("json.log").read())["usable"]' || fault "doctor --json"
run devices 0 devices
run devices_json 0 devices --json
has devices_json '"memory_source": "GlobalMemoryStatusEx"'
run plan 0 plan "$top/profiles/rna_small.ini"

# Without OpenCL.dll, and with a driver that crashes, hangs, offers nothing, or is not there.
overrides=opencl=
run no_loader 4 doctor
has no_loader 'the registry names no driver' 'install the current graphics driver'
run no_loader_train 4 train "$top/profiles/rna_small.ini"
has no_loader_train 'no OpenCL device found' 'graphics driver'
overrides=opencl=n # where the system has none, one of the current folder is not taken, whose start leaves a file
mv wine/drive_c/windows/system32/opencl.dll kept
"$compiler" -shared -x c - -o OpenCL.dll <<<'int fopen(); int DllMain() { return fopen("planted", "w") != 0; }' 2>/dev/null
run planted 4 devices
[[ -s OpenCL.dll && ! -e planted ]] || fault "OpenCL.dll of the current folder was loaded"
mv kept wine/drive_c/windows/system32/opencl.dll
rm OpenCL.dll
overrides=
function=clGetExtensionFunctionAddress
for body in crash:'*(volatile int *)16 = 1' hang:'for (;;) Sleep(1000)' none:'(void)0'; do
    printf '#include <windows.h>\n__declspec(dllexport) void *%s(void) {\n    %s;\n    return 0;\n}\n' "$function" "${body#*:}" >driver.c
    "$compiler" -shared driver.c -o "${body%%:*}64.dll"
done
for driver in crash64.dll hang64.dll none64.dll gone64.dll; do registry add "Z:$work/$driver" /t REG_DWORD /d 0; done
run drivers 4 doctor --seconds 3
has drivers driver-crashes driver-hangs driver-no-platform icd-library-missing 'install the current graphics driver'
for driver in crash64.dll hang64.dll none64.dll gone64.dll; do registry delete "Z:$work/$driver"; done

# A card whose driver brings no OpenCL.
key='HKEY_LOCAL_MACHINE\SYSTEM\CurrentControlSet' class='{4D36E968-E325-11CE-BFC1-08002BE10318}'
slot="$key\\Enum\\PCI\\VEN_1002&DEV_73BF&SUBSYS_00000000&REV_00\\4&1"
{
    printf 'REGEDIT4\n\n[%s]\n"ClassGUID"="%s"\n"DeviceDesc"="AMD Radeon RX 6800 XT"\n"Driver"="%s\\\\0007"\n"HardwareID"=hex(7):' "$slot" "$class" "$class"
    printf 'PCI\\VEN_1002&DEV_73BF\0\0' | od -An -v -tx1 | tr -s ' \n' , | sed 's/^,//; s/,$//'
    printf '\n\n[%s\\Properties\\{540B947E-8B40-45BC-A8A2-6A0B894CBDA2}\\0005]\n@=hex(ffff0011):ff\n' "$slot" # it is present
    printf '\n[%s\\Control\\Class\\%s\\0007]\n"DriverVersion"="31.0.21001.45002"\n' "$key" "$class"
} >card.reg
"$wine" regedit card.reg
run card 1 doctor
has card 'AMD Radeon RX 6800 XT' amd-icd-missing "install AMD's graphics driver"

# Its driver does; the key of a card that was taken out stays, and does not count.
for entry in '0007 amdhere64.dll' '0042 ghost64.dll'; do
    "$wine" reg add "$key\\Control\\Class\\$class\\${entry% *}" /v OpenCLDriverName /d "C:\\Treiber\\${entry#* }" /f >/dev/null 2>&1
done
run opencl 1 doctor
has opencl 'driver C:/Treiber/amdhere64.dll'
! grep -q ghost64 opencl.log || fault "the driver of a card that is not there is listed"

# Of several texts, the first.
"$wine" reg add "$key\\Control\\Class\\$class\\0007" /v OpenCLDriverName /t REG_MULTI_SZ /d 'C:\Treiber\amdfirst64.dll\0C:\Treiber\amdother64.dll' /f >/dev/null 2>&1
run several 1 doctor
has several 'driver C:/Treiber/amdfirst64.dll'
"$wine" reg delete "$key\\Control\\Class\\$class\\0007" /v OpenCLDriverName /f >/dev/null 2>&1

# A run, and the figures of NVIDIA's card.
run make 0 data make rna --out daten --count 24
small=(--set data.path=daten --set model.d_model=32 --set model.heads=2 --set model.layers=1 --set model.d_ff=64 --set train.epochs=2 --set train.warmup_steps=1)
run train 0 train "$top/profiles/rna_small.ini" "${small[@]}" --out run
has train 'AMD Radeon RX 6800 XT is installed, but cannot be used'
run monitor 0 monitor run --once
run sample 0 monitor run --json
python3 - <<'P' || fault "the figures of the host"
import json
values = json.load(open("sample.log"))["values"]
assert 1e6 < values["host_memory"] < values["memory_device_total"], values
assert values["host_memory_available"] > 1e8 and values["memory_own"] > 1e6, values
assert all(values[name] is None for name in ("power", "temperature", "clock", "host_memory_limit")), values
P
if [[ $cards ]]; then
    "$compiler" -shared "$top/tests/monitor/stub/nvml_stub.c" -o "$WINEPREFIX/drive_c/windows/system32/nvml.dll"
    export OCL_ICD_VENDORS=$cards CLEAT_VIRTUAL_CARD=t4 CLEAT_VIRTUAL_CARD_PCI=1
    CLEAT_STUB_NVML=good run nvml 0 devices --json
    CLEAT_STUB_NVML=mismatch run no_nvml 0 devices --json
    has nvml '"memory_source": "NVML"' '"memory_free": 11000000000'
    has no_nvml '"memory_source": "unknown"' '"memory_free": 0'
fi
echo "$faults faults"
((faults == 0))
