/* Targets of the fuzzer: images, tables, molecules, grids. */
#include "fuzz.h"

#include "cleat/images.h"
#include "cleat/rna.h"
#include "cleat/series.h"
#include "core/memory.h"
#include "data/common/csv_stream.h"
#include "data/dataset.h"
#include "data/image/file.h"
#include "data/image/images.h"
#include "data/maps/esri_grid.h"
#include "data/maps/npy.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>

static uint32_t number_at(const uint8_t *bytes) {
    return (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 | bytes[3];
}

/* Corrects the checksums of a PNG, because a wrong one ends the parsing. */
static void repair_checksums(uint8_t *bytes, size_t size) {
    for (size_t at = 8; at + 12 <= size;) {
        const size_t length = number_at(bytes + at);
        if (length > size - at - 12) return;
        const uLong sum = crc32(crc32(0, NULL, 0), bytes + at + 4, (uInt)length + 4);
        for (int i = 0; i < 4; ++i) bytes[at + 8 + length + (size_t)i] = (uint8_t)(sum >> (24 - 8 * i));
        at += length + 12;
    }
}

/* Up to 2^22 pixels; larger images are only slow. */
static void read_image(const char *path) {
    cleat_image image = {0};
    if (cleat_image_probe(path, &image, NULL) || image.height * image.width > 1 << 22) return;
    image = (cleat_image){0};
    if (!cleat_image_read_min_side(path, 3, 4, &image, NULL)) cleat_image_free(&image);
    if (!cleat_image_read_ids(path, &image, NULL)) cleat_image_free(&image);
}

static void png(const uint8_t *bytes, size_t size) {
    char *copy = fuzz_text(bytes, size);
    repair_checksums((uint8_t *)copy, size);
    read_image(fuzz_file("x.png", (const uint8_t *)copy, size));
    free(copy);
}

static void jpeg(const uint8_t *bytes, size_t size) {
    read_image(fuzz_file("x.jpg", bytes, size));
}

static void tiff(const uint8_t *bytes, size_t size) {
    read_image(fuzz_file("x.tif", bytes, size));
}

static void image_table(const uint8_t *bytes, size_t size) {
    const uint8_t *part = bytes;
    cleat_image_options options = cleat_image_defaults();
    cleat_dataset *dataset = NULL;
    const size_t length = fuzz_part(&bytes, &size, &part);
    options.size = 8;
    fuzz_file("x.png", bytes, size);
    fuzz_file("y.png", bytes, size);
    if (cleat_images_open(fuzz_file("train.csv", part, length), &options, &dataset, NULL)) return;
    cleat_dataset_destroy(dataset);
}

static void read_idx(const uint8_t *bytes, size_t size, const char *images, const char *labels) {
    const uint8_t *part = bytes;
    bool found;
    const cleat_image_options options = cleat_image_defaults();
    cleat_image_set set = {.options = &options};
    const size_t length = fuzz_part(&bytes, &size, &part);
    fuzz_file(images, part, length);
    fuzz_file(labels, bytes, size);
    (void)!cleat_idx_open(fuzz_folder(), &set, &found, NULL);
    cleat_image_set_free(&set);
}

static void idx(const uint8_t *bytes, size_t size) {
    read_idx(bytes, size, "train-images-idx3-ubyte", "train-labels-idx1-ubyte");
}

static void gzip(const uint8_t *bytes, size_t size) {
    read_idx(bytes, size, "train-images-idx3-ubyte.gz", "train-labels-idx1-ubyte.gz");
}

/* The second part of the input repeats to fill a record. */
static void cifar(const uint8_t *bytes, size_t size) {
    enum { RECORD = 3073 };
    uint8_t record[RECORD];
    const uint8_t *part = bytes;
    bool found;
    const cleat_image_options options = cleat_image_defaults();
    cleat_image_set set = {.options = &options};
    const size_t length = fuzz_part(&bytes, &size, &part);
    fuzz_file("batches.meta.txt", part, length);
    for (size_t i = 0; i < RECORD; ++i) record[i] = size ? bytes[i % size] : 0;
    fuzz_file("data_batch_1.bin", record, size % 7 ? RECORD : size);
    (void)!cleat_cifar_open(fuzz_folder(), &set, &found, NULL);
    cleat_image_set_free(&set);
}

static void npy(const uint8_t *bytes, size_t size) {
    const char *path = fuzz_file("x.npy", bytes, size);
    cleat_npy found;
    float values[64];
    if (cleat_npy_probe(path, &found, NULL)) return;
    const int64_t count = found.elements < 64 ? found.elements : 64;
    (void)!cleat_npy_read(path, &found, found.elements - count, count, values, NULL);
}

static void esri(const uint8_t *bytes, size_t size) {
    cleat_esri_grid grid;
    if (!cleat_esri_grid_read(fuzz_file("x.asc", bytes, size), &grid, NULL)) cleat_esri_grid_free(&grid);
}

static void csv(const uint8_t *bytes, size_t size) {
    cleat_csv_stream stream = {0};
    bool more = true;
    if (cleat_csv_stream_open(fuzz_file("x.csv", bytes, size), &stream, NULL)) return;
    while (more && !cleat_csv_stream_next(&stream, &more, NULL)) continue;
    cleat_csv_stream_close(&stream);
}

static void fill_all(cleat_dataset *dataset) {
    static int32_t space[16][1 << 14];
    void *fields[16];
    for (size_t i = 0; i < 16; ++i) fields[i] = space[i];
    for (size_t f = 0; f < cleat_dataset_fields(dataset); ++f)
        for (size_t i = 0; i < cleat_dataset_count(dataset) && i < 32; ++i)
            if (cleat_field_bytes(cleat_dataset_field(dataset, f), cleat_dataset_length(dataset, i)) >
                (int64_t)sizeof *space)
                return;
    for (size_t i = 0; i < cleat_dataset_count(dataset) && i < 32; ++i)
        (void)!cleat_dataset_fill(dataset, i, cleat_dataset_length(dataset, i), NULL, fields, NULL);
}

static void series(const uint8_t *bytes, size_t size) {
    cleat_series_options options = cleat_series_defaults();
    cleat_dataset *dataset = NULL;
    options.lookback = 3;
    options.horizon = 2;
    options.gaps = size % 4 == 1 ? CLEAT_GAPS_FILL : size % 4 == 2 ? CLEAT_GAPS_SKIP : CLEAT_GAPS_ERROR;
    options.missing = size % 3 ? CLEAT_MISSING_FILL : CLEAT_MISSING_SKIP;
    options.anchor = size % 2 ? CLEAT_SERIES_ANCHOR_LAST : CLEAT_SERIES_ANCHOR_NONE;
    if (cleat_series_open(fuzz_file("series.csv", bytes, size), &options, &dataset, NULL)) return;
    fill_all(dataset);
    cleat_dataset_destroy(dataset);
}

static void read_rna(const char *path, bool structures) {
    cleat_rna_options options = cleat_rna_defaults();
    cleat_dataset *dataset = NULL;
    options.structures = structures;
    if (cleat_rna_open(path, &options, &dataset, NULL)) return;
    fill_all(dataset);
    cleat_dataset_destroy(dataset);
}

static void pdb(const uint8_t *bytes, size_t size) {
    read_rna(fuzz_file("x.pdb", bytes, size), true);
}

static void fasta(const uint8_t *bytes, size_t size) {
    read_rna(fuzz_file("x.fasta", bytes, size), false);
}

static void rna_csv(const uint8_t *bytes, size_t size) {
    const uint8_t *part = bytes;
    const size_t length = fuzz_part(&bytes, &size, &part);
    fuzz_file("sequences.csv", part, length);
    fuzz_file("labels.csv", bytes, size);
    read_rna(fuzz_folder(), true);
}

const fuzz_target fuzz_data_targets[] = {
    {"png", png},     {"tiff", tiff},       {"image_table", image_table},
    {"jpeg", jpeg},   {"idx", idx},         {"gzip", gzip},
    {"cifar", cifar}, {"npy", npy},         {"esri", esri},
    {"csv", csv},     {"series", series},   {"pdb", pdb},
    {"fasta", fasta}, {"rna_csv", rna_csv}, {NULL, NULL},
};
