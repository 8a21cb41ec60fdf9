/* Joining and leaving the other processes that an MPI launcher started with this one. */
#include "cli.h"

#include <stdio.h>
#include <unistd.h>

cleat_status cli_join_ranks(cleat_ranks **ranks, cleat_error *error) {
    *ranks = NULL;
    if (!cleat_ranks_launched()) return CLEAT_OK;
    cleat_status status = cleat_ranks_open(ranks, error);
    if (!status && !cli_is_leader(*ranks)) cli_log_as_rank(cleat_ranks_rank(*ranks));
    return status;
}

bool cli_is_leader(const cleat_ranks *ranks) {
    return cleat_ranks_rank(ranks) == 0;
}

int cli_leave_ranks(cleat_ranks *ranks, cleat_status status, const cleat_error *error) {
    const bool prints = cli_is_leader(ranks) || status == CLEAT_ERR_RANK_LOST;
    const int exit_code = prints ? cli_finish(status, error) : cli_code_of(status);
    if (cleat_ranks_are_broken(ranks) ||
        status == CLEAT_ERR_RANK_LOST) { /* MPI's thread waits for the rank that is lost */
        fflush(NULL);
        _exit(exit_code);
    }
    cleat_ranks_close(ranks);
    return exit_code;
}
