/* Workloads of a whole model: training steps with the shapes of other frameworks' benchmarks, or of a
 * profile. */
#include "bench/bench.h"

#include "bench/steps.h"
#include "core/memory.h"

#include <stdio.h>
#include <string.h>

typedef struct trajectory_job {
    cleat_trajectory run;
    int64_t micro_batches;
} trajectory_job;

static cleat_status step(cleat_bench_job *job, cleat_error *error) {
    trajectory_job *own = job->own;
    return cleat_training_step(&own->run, own->micro_batches, &job->loss, error);
}

static void close_trajectory(void *own) {
    trajectory_job *it = own;
    it->run.device = NULL; /* owned by the job */
    cleat_trajectory_close(&it->run);
    cleat_free(it);
}

static trajectory_job *own_trajectory(cleat_bench_job *job, cleat_error *error) {
    trajectory_job *made = cleat_alloc(1, sizeof *made);
    if (!made) {
        cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for a model");
        return NULL;
    }
    made->run.device = job->device;
    made->micro_batches = 1;
    job->own = made;
    job->close = close_trajectory;
    job->step = step;
    return made;
}

static void describe(const trajectory_job *own, cleat_bench_job *job) {
    const cleat_session *session = own->run.session;
    cleat_warn_no_tf32(own->run.profile->train.precision, cleat_device_get_facts(session->device));
    const cleat_work_graph *graphs[] = {&session->work->train[0], &session->work->update};
    job->exec = session->exec;
    job->storage = session->work->storage;
    job->plan = session->work->plan;
    job->n_parts = 2;
    for (int i = 0; i < 2; ++i)
        job->parts[i] = (cleat_bench_part){
            .graph = graphs[i]->index, .last = graphs[i]->graph->node_count, .times = i ? 1 : own->micro_batches};
    job->samples = session->work->buckets[0].global_batch_size;
}

/* A profile, the sizes that a dataset would determine, and a batch. */
typedef struct model_row {
    const char *name, *what;
    const char *profile, *sizes; /* INI; JSON for cleat_model_set_sizes, or NULL */
    int64_t batch, length;
} model_row;

#define RNA_WHAT "RNA transformer of 4 M parameters: 5 layers, d 256, 8 heads, ff 1024; MSE and a bond term"
#define RNA_PROFILE                                                                                                    \
    "[model]\ntype = rna_transformer\nd_model = 256\nheads = 8\nlayers = 5\nd_ff = 1024\ndropout = 0\n"                \
    "head = absolute\npositions = start\n"                                                                             \
    "[loss]\ncoordinate = 1\nbond_length = 1\npair_distance = 0\nlddt = 0\nframe = 0\nhandedness = 0\n"                \
    "bond_angle = 0\nclash = 0\nbase_pair = 0\n"
#define RESNET_50_PROFILE                                                                                              \
    "[model]\ntype = image_resnet\ndepth = 50\nstem = large\ndropout = 0\n[data]\nimage_size = 224\n"
#define VIT_PROFILE                                                                                                    \
    "[model]\ntype = image_vit\nd_model = 384\nheads = 6\nlayers = 12\nd_ff = 1536\npatch = 16\ndropout = 0\n"         \
    "[data]\nimage_size = 224\n"
#define RESNET_PROFILE(PX)                                                                                             \
    "[model]\ntype = image_resnet\ndepth = 18\nstem = large\ndropout = 0\n[data]\nimage_size = " PX "\n"
#define BERT_PROFILE(SIZES)                                                                                            \
    "[model]\ntype = text_classifier\nnetwork = bert\ndropout = 0\n" SIZES "[data]\nmax_length = 128\n"

static const model_row rows[] = {
    {"W1_B2L512", RNA_WHAT, RNA_PROFILE, NULL, 2, 512},
    {"W1_B1L1200", RNA_WHAT, RNA_PROFILE, NULL, 1, 1200},
    {"W2", "text classifier: vocabulary 8000, 4 layers, d 128, 4 heads, ff 512, length 128, batch 32; cross entropy",
     "[model]\ntype = text_classifier\nd_model = 128\nheads = 4\nlayers = 4\nd_ff = 512\ndropout = 0\npooling = mean\n",
     "{\"vocabulary\": 8000, \"classes\": 3}", 32, 128},
    {"W3", "LSTM: 16 inputs, hidden 128, 2 layers, 64 steps, batch 256; MSE of the last step's output",
     "[model]\ntype = series_lstm\nhidden = 128\nlayers = 2\ndropout = 0\n[data]\nlookback = 64\nhorizon = 1\n",
     "{\"inputs\": 16, \"outputs\": 1}", 256, 64},
    {"W4", "dense classifier 64-512-512-256-2 with ReLU, batch 512; cross entropy",
     "[model]\ntype = series_dense\ndropout = 0\n[data]\nlookback = 1\nhorizon = 1\n",
     "{\"inputs\": 64, \"hidden\": [512, 512, 256], \"classes\": 2}", 512, 1},
    {"W6_temporal", "temporal transformer: 400 patches, 6 steps of 16 inputs, 3 layers, d 64, 4 heads, ff 256; MSE",
     "[model]\ntype = series_transformer\nd_model = 64\nheads = 4\nlayers = 3\nd_ff = 256\ndropout = 0\n"
     "[data]\nlookback = 6\nhorizon = 1\n",
     "{\"inputs\": 16, \"outputs\": 1}", 400, 6},
    {"W5_64", "ResNet-18, 10 classes, 64 px, batch 16; cross entropy", RESNET_PROFILE("64"),
     "{\"inputs\": 3, \"classes\": 10}", 16, 64},
    {"W5_224", "ResNet-18, 1000 classes, 224 px, batch 4; cross entropy", RESNET_PROFILE("224"),
     "{\"inputs\": 3, \"classes\": 1000}", 4, 224},
    {"W8_resnet50", "ResNet-50, 1000 classes, 224 px, batch 8; cross entropy", RESNET_50_PROFILE,
     "{\"inputs\": 3, \"classes\": 1000}", 8, 224},
    {"W9_vit_s16", "ViT-S/16, 1000 classes, 224 px, batch 8; cross entropy", VIT_PROFILE,
     "{\"inputs\": 3, \"classes\": 1000}", 8, 224},
    {"W6_segformer", "SegFormer-B0, 2 classes, 64 px, batch 8; cross entropy of every pixel",
     "[model]\ntype = mask_segformer\nbackbone = b0\ndropout = 0\n[data]\nimage_size = 64\n",
     "{\"inputs\": 3, \"classes\": 2}", 8, 64},
    {"W7_bert_base", "BERT base, 3 classes: vocabulary 30522, 12 layers, d 768, length 128, batch 8; cross entropy",
     BERT_PROFILE("d_model = 768\nheads = 12\nlayers = 12\nd_ff = 3072\n"), "{\"vocabulary\": 30522, \"classes\": 3}",
     8, 128},
    {"W7_minilm", "MiniLM, 3 classes: vocabulary 30522, 6 layers, d 384, length 128, batch 32; cross entropy",
     BERT_PROFILE("d_model = 384\nheads = 12\nlayers = 6\nd_ff = 1536\n"), "{\"vocabulary\": 30522, \"classes\": 3}",
     32, 128},
};
enum { ROWS = sizeof rows / sizeof rows[0] };

static cleat_status open_model(const model_row *row, cleat_precision precision, cleat_profile **profile,
                               cleat_model **model, cleat_error *error) {
    cleat_status status = cleat_profile_create(profile, error);
    if (!status) status = cleat_profile_read_text(*profile, row->name, row->profile, strlen(row->profile), error);
    if (status) return status;
    (*profile)->train.precision = precision == CLEAT_PRECISION_AUTO ? CLEAT_PRECISION_F32 : precision;
    (*profile)->train.learning_rate = 1e-4;
    (*profile)->train.weight_decay = 0.01;
    (*profile)->train.max_grad_norm = CLEAT_NONE;
    status = cleat_profile_create_model(*profile, model, error);
    return !status && row->sizes ? cleat_model_set_sizes(*model, row->sizes, error) : status;
}

static cleat_status open_row(const void *spec, cleat_bench_job *job, cleat_error *error) {
    const model_row *row = spec;
    cleat_dataset *dataset = NULL;
    trajectory_job *own = own_trajectory(job, error);
    if (!own) return CLEAT_ERR_MEMORY;
    cleat_status status = open_model(row, job->precision, &own->run.profile, &own->run.model, error);
    if (!status) status = cleat_model_open_synthetic(own->run.model, row->batch, row->length, &dataset, error);
    if (!status) status = cleat_trajectory_prepare(&own->run, dataset, error);
    cleat_dataset_destroy(dataset);
    if (!status) describe(own, job);
    return status;
}

bool cleat_bench_model(size_t i, cleat_bench_entry *entry) {
    if (i >= ROWS) return false;
    *entry = (cleat_bench_entry){.info.kind = CLEAT_BENCH_MODEL, .open = open_row, .spec = &rows[i]};
    snprintf(entry->info.name, sizeof entry->info.name, "%s", rows[i].name);
    snprintf(entry->info.peer, sizeof entry->info.peer, "%s", rows[i].name);
    snprintf(entry->info.what, sizeof entry->info.what, "%s", rows[i].what);
    return true;
}

cleat_status cleat_bench_model_open(const char *name, cleat_precision precision, cleat_bench_network *made,
                                    cleat_error *error) {
    for (size_t i = 0; i < ROWS; ++i) {
        if (strcmp(rows[i].name, name) != 0) continue;
        *made = (cleat_bench_network){.batch = rows[i].batch, .length = rows[i].length};
        const cleat_status status = open_model(&rows[i], precision, &made->profile, &made->model, error);
        if (status) cleat_bench_model_close(made);
        return status;
    }
    return cleat_fail(error, CLEAT_ERR_NOT_FOUND, "'%s' is not a benchmark model", name);
}

void cleat_bench_model_close(cleat_bench_network *made) {
    cleat_model_destroy(made->model);
    cleat_profile_destroy(made->profile);
    *made = (cleat_bench_network){0};
}

/* Creates a session for a full global batch of the longest length, in micro-batches that fit the device. */
static cleat_status fit_session(trajectory_job *own, bool *data_known, cleat_error *error) {
    cleat_trajectory *run = &own->run;
    cleat_lengths all;
    cleat_status status = cleat_fit_lengths(run->profile, run->model, &all, data_known, error);
    if (status) return status;
    cleat_lengths longest = {
        .count = 1, .lengths = {all.lengths[all.count - 1]}, .samples = {cleat_profile_effective_batch(run->profile)}};
    cleat_fit_request request = cleat_fit_request_for(run->profile, run->model, CLEAT_FOR_TRAINING, &longest,
                                                      cleat_device_get_facts(run->device), NULL);
    status = cleat_session_fit(run->device, &request, &run->session, error);
    if (!status) own->micro_batches = cleat_fit_micro_batches(&run->session->work->buckets[0]);
    return status;
}

static cleat_status start(cleat_trajectory *run, cleat_error *error) {
    const cleat_bucket *bucket = &run->session->work->buckets[0];
    cleat_dataset *dataset = NULL;
    cleat_status status =
        cleat_model_open_synthetic(run->model, bucket->micro_batch_size, bucket->length, &dataset, error);
    if (!status) status = cleat_trajectory_start(run, dataset, error);
    cleat_dataset_destroy(dataset);
    return status;
}

static cleat_status open_profile(const void *spec, cleat_bench_job *job, cleat_error *error) {
    const cleat_profile *profile = spec;
    trajectory_job *own = own_trajectory(job, error);
    if (!own) return CLEAT_ERR_MEMORY;
    cleat_status status = cleat_profile_clone(profile, &own->run.profile, error);
    if (status) return status;
    if (job->precision != CLEAT_PRECISION_AUTO) own->run.profile->train.precision = job->precision;
    status = cleat_profile_create_model(own->run.profile, &own->run.model, error);
    if (!status) status = fit_session(own, &job->data_known, error);
    if (!status) status = start(&own->run, error);
    if (status) return status;
    describe(own, job);
    job->length = own->run.session->work->buckets[0].length;
    return CLEAT_OK;
}

cleat_bench_entry cleat_bench_profile(const cleat_bench_request *request) {
    return (cleat_bench_entry){.info.kind = CLEAT_BENCH_MODEL, .open = open_profile, .spec = request->profile};
}
