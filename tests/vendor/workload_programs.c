/* Writes the programs that a training step of the workloads W1 to W9 launches on NVIDIA's cards, one file
 * each, as assembled by the host. Plans are made for card descriptions; no device is needed.
 *
 *   workload_programs FOLDER CARD...
 *
 * FOLDER receives NUMBER.cl and programs.tsv: number, card, kernel, build options, and the first workload and
 * precision that launches it. Covers both precisions of every workload. test_spills.py runs this program. */
#include "bench/bench.h"
#include "cleat/card.h"
#include "core/memory.h"
#include "device/programs.h"
#include "fit/workload.h"
#include "graph/launch.h"
#include "platform/files.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LINE = 1024, MAX_LINES = 8192 };

typedef struct listing {
    const char *folder, *card, *workload;
    FILE *table;
    char *seen[MAX_LINES]; /* card, file, kernel and options */
    int seen_count, programs;
} listing;

static void must(cleat_status status, const char *what, const cleat_error *error) {
    if (!status) return;
    fprintf(stderr, "workload_programs: %s: %s\n", what, error->text);
    exit(1);
}

static bool is_new(listing *list, const char *line) {
    for (int i = 0; i < list->seen_count; ++i)
        if (strcmp(list->seen[i], line) == 0) return false;
    if (list->seen_count == MAX_LINES || !(list->seen[list->seen_count++] = strdup(line))) {
        fprintf(stderr, "workload_programs: more programs than expected\n");
        exit(1);
    }
    return true;
}

static void write_launch(listing *list, const cleat_launch *launch) {
    char line[LINE], path[LINE], *source = NULL;
    cleat_error error = {0};
    snprintf(line, sizeof line, "%s\t%s\t%s\t%s", list->card, launch->file, launch->kernel, launch->options);
    if (!is_new(list, line)) return;
    must(cleat_kernel_source_of(launch->file, launch->source, &source, &error), launch->file, &error);
    snprintf(path, sizeof path, "%s/%d.cl", list->folder, list->programs);
    FILE *file = fopen(path, "w");
    if (!file || fputs(source, file) < 0 || fclose(file)) {
        perror(path);
        exit(1);
    }
    cleat_free(source);
    fprintf(list->table, "%d\t%s\t%s\t%s\t%s\n", list->programs++, list->card, launch->kernel, launch->options,
            list->workload);
}

static void write_graph(listing *list, const cleat_plan *plan, const cleat_work_graph *graph) {
    const cleat_layout *layout = &plan->layouts[graph->index];
    cleat_error error = {0};
    cleat_binder binder;
    cleat_binder_init(&binder, &plan->facts);
    for (size_t i = 0; i < layout->node_count; ++i)
        if (layout->variants[i])
            must(cleat_bind_node(layout->variants[i], layout->graph->nodes[i], &binder, &error), list->workload,
                 &error);
    for (size_t i = 0; i < binder.count; ++i)
        if (binder.launches[i].kind == CLEAT_LAUNCH_KERNEL) write_launch(list, &binder.launches[i]);
    cleat_binder_clear(&binder);
}

static void write_workload(listing *list, const char *name, cleat_precision precision, const cleat_card *card) {
    cleat_bench_network network;
    cleat_workload *work = NULL;
    cleat_error error = {0};
    char what[LINE];
    snprintf(what, sizeof what, "%s in %s", name, precision == CLEAT_PRECISION_F32 ? "f32" : "f16");
    list->workload = what;
    must(cleat_bench_model_open(name, precision, &network, &error), what, &error);
    const cleat_bucket bucket = {
        .length = network.length, .micro_batch_size = network.batch, .global_batch_size = network.batch};
    const cleat_workload_spec spec = {
        .facts = &card->facts, .model = network.model, .buckets = &bucket, .n_buckets = 1};
    must(cleat_workload_create(&spec, &work, &error), what, &error);
    write_graph(list, work->plan, &work->train[0]);
    write_graph(list, work->plan, &work->update);
    cleat_workload_destroy(work);
    cleat_bench_model_close(&network);
}

int main(int argc, char **argv) {
    static const char *const workloads[] = {"W1_B2L512",    "W2",           "W3",          "W4",
                                            "W5_64",        "W6_segformer", "W6_temporal", "W7_minilm",
                                            "W7_bert_base", "W8_resnet50",  "W9_vit_s16"};
    static listing list;
    char path[LINE];
    if (argc < 3) {
        fprintf(stderr, "usage: workload_programs FOLDER CARD...\n");
        return 2;
    }
    list.folder = argv[1];
    snprintf(path, sizeof path, "%s/programs.tsv", list.folder);
    if (!(list.table = fopen(path, "w"))) {
        perror(path);
        return 1;
    }
    for (int c = 2; c < argc; ++c) {
        cleat_card card;
        cleat_error error = {0};
        must(cleat_card_open(argv[c], &card, &error), argv[c], &error);
        list.card = argv[c];
        for (size_t i = 0; i < sizeof workloads / sizeof *workloads; ++i) {
            write_workload(&list, workloads[i], CLEAT_PRECISION_F32, &card);
            write_workload(&list, workloads[i], CLEAT_PRECISION_F16, &card);
        }
    }
    for (int i = 0; i < list.seen_count; ++i) free(list.seen[i]);
    return fclose(list.table) != 0;
}
