/* Image classification datasets in single files: IDX, CIFAR. */
/* ctest: quick */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "files.h"
#include "image_sets.h"

#include "platform/files.h"

/* --- IDX ------------------------------------------------------------------------------------------------------ */

enum { COUNT = 40, SIDE = 6 };

static uint8_t idx_pixel(int sample, int at) {
    return (uint8_t)(sample * 13 + at * 7 + sample * at);
}

static void put_size(uint8_t *bytes, uint32_t size) {
    for (int i = 0; i < 4; ++i) bytes[i] = (uint8_t)(size >> (24 - 8 * i));
}

/* channels 0: labels, i % 3. Returns the number of bytes. */
static size_t make_idx(uint8_t *bytes, int count, int channels) {
    int rank = channels == 0 ? 1 : channels == 1 ? 3 : 4;
    const uint32_t sizes[4] = {(uint32_t)count, SIDE, SIDE, (uint32_t)channels};
    int each = channels ? SIDE * SIDE * channels : 1;
    memcpy(bytes, (uint8_t[4]){0, 0, 8, (uint8_t)rank}, 4);
    for (int i = 0; i < rank; ++i) put_size(bytes + 4 + 4 * i, sizes[i]);
    uint8_t *at = bytes + 4 + 4 * rank;
    for (int i = 0; i < count; ++i)
        for (int k = 0; k < each; ++k) *at++ = channels ? idx_pixel(i, k) : (uint8_t)(i % 3);
    return (size_t)(at - bytes);
}

static void write_idx(const char *name, int count, int channels, size_t cut, int more) {
    static uint8_t bytes[65536];
    char path[512];
    snprintf(path, sizeof path, "%s", test_path(name));
    size_t size = make_idx(bytes, count, channels) + (size_t)more;
    unlink(path);
    if (!strstr(name, ".gz")) {
        test_write(path, bytes, size - cut);
        return;
    }
    gzFile file = gzopen(path, "wb");
    assert_int_equal(gzwrite(file, bytes, (unsigned)size), size);
    gzclose(file);
    if (!cut) return;
    char *packed = test_read(path, &size);
    test_write(path, packed, size - cut);
    free(packed);
}

static void idx_files_are_read(void **state) {
    (void)state;
    for (int channels = 1; channels <= 3; channels += 2) {
        const char *path = images_lasting(test_folder(channels == 1 ? "idx1" : "idx3"));
        static const char *const names[2][4] = {
            {"idx1/train-images-idx3-ubyte.gz", "idx1/train-labels-idx1-ubyte.gz", "idx1/t10k-images.idx3",
             "idx1/t10k-labels.idx1"},
            {"idx3/train-images", "idx3/train-labels", "idx3/test-images.gz", "idx3/test-labels.gz"}};
        for (int i = 0; i < 4; ++i) write_idx(names[channels / 2][i], i < 2 ? COUNT : 9, i % 2 ? 0 : channels, 0, 0);
        cleat_image_options options = images_small_options();
        options.size = SIDE;
        cleat_dataset *dataset = images_open_ok(path, &options);
        cleat_image_info info = cleat_image_describe(dataset);
        assert_true(info.channels == channels && info.classes == 3);
        assert_true(info.samples[0] == COUNT && info.samples[1] == 9 && info.samples[2] == 0);
        assert_string_equal(cleat_images_class(dataset, 2), "2");
        double mean[3] = {0}, squares[3] = {0};
        int each = SIDE * SIDE * channels;
        for (int i = 0; i < COUNT * each; ++i) {
            double value = idx_pixel(i / each, i % each) / 255.0;
            mean[i % channels] += value / (COUNT * SIDE * SIDE);
            squares[i % channels] += value * value / (COUNT * SIDE * SIDE);
        }
        float image[SIDE * SIDE * 3];
        for (int i = 0; i < COUNT; ++i) {
            assert_int_equal(images_fill(dataset, (size_t)i, NULL, image), i % 3);
            for (int k = 0; k < each; ++k) {
                int c = k % channels;
                double expected = (idx_pixel(i, k) / 255.0 - mean[c]) / sqrt(squares[c] - mean[c] * mean[c]);
                assert_true(fabs(image[k] - expected) < 1e-5);
            }
        }
        assert_string_equal(cleat_dataset_id(dataset, 17), "train-00017");
        assert_int_equal(cleat_dataset_save(dataset, test_folder("idx_model"), NULL), CLEAT_OK);
        cleat_dataset_destroy(dataset);
        options.val_fraction = 0.2; /* if so, the official test part becomes the test split */
        options.channels = 4 - channels;
        dataset = images_open_ok(path, &options);
        info = cleat_image_describe(dataset);
        assert_int_equal(info.channels, 4 - channels);
        assert_true(info.samples[1] > 0 && info.samples[1] < 20 && info.samples[0] + info.samples[1] == COUNT);
        assert_int_equal(info.samples[2], 9);
        images_fill(dataset, 3, NULL, image);
        if (channels == 1) assert_true(image[0] == image[1] && image[3] == image[4]);
        cleat_dataset_destroy(dataset);
    }
}

static void idx_files_are_predicted(void **state) {
    (void)state;
    const char *path = images_lasting(test_folder("predicted")), *model = images_lasting(test_path("idx_model"));
    cleat_image_options options = images_small_options();
    options.fitted = model;
    write_idx("predicted/t10k-images.gz", 9, 1, 0, 0);
    images_expect_failure(path, &options, "t10k-images.gz has no label file");
    options.predict = true;
    cleat_dataset *dataset = images_open_ok(path, &options);
    float image[12 * 12 * 3];
    assert_int_equal(cleat_image_describe(dataset).samples[CLEAT_SPLIT_TEST], 9);
    assert_int_equal(cleat_image_describe(dataset).channels, 3); /* the channels of the model */
    assert_int_equal(images_fill(dataset, 2, NULL, image), CLEAT_NO_CLASS);
    cleat_dataset_destroy(dataset);
    write_idx("predicted/t10k-labels", 9, 0, 0, 0);
    dataset = images_open_ok(path, &options);
    assert_int_equal(images_fill(dataset, 2, NULL, image), 2);
    cleat_dataset_destroy(dataset);
}

static void bad_idx_files_are_refused(void **state) {
    (void)state;
    const char *path = images_lasting(test_folder("idx")), *images = "idx/train-images", *labels = "idx/train-labels";
    cleat_image_options options = images_small_options();
    write_idx(images, COUNT, 1, 0, 0);
    images_expect_failure(path, &options, "train-images|train-labels*");
    write_idx(labels, COUNT - 1, 0, 0, 0);
    images_expect_failure(path, &options, "40 images|39 labels");
    write_idx(labels, COUNT, 0, 0, 0);
    cleat_dataset_destroy(images_open_ok(path, &options));
    options.classes = "a b";
    images_expect_failure(path, &options, "unknown class '2': data.labels has a, b");
    options.classes = NULL;
    for (size_t cut = 1; cut < COUNT + 8; cut += 5) {
        write_idx(labels, COUNT, 0, cut, 0);
        images_expect_failure(path, &options, "train-labels|truncated");
    }
    write_idx(labels, COUNT, 0, 0, 1);
    images_expect_failure(path, &options, "train-labels|more bytes");
    write_idx(labels, COUNT, 1, 0, 0);
    images_expect_failure(path, &options, "train-labels|rank 3");
    write_idx(labels, COUNT, 0, 0, 0);
    write_idx(images, COUNT, 0, 0, 0);
    images_expect_failure(path, &options, "train-images|rank 1");
    write_idx(images, 0, 1, 0, 0);
    images_expect_failure(path, &options, "size 1 of 3 is 0");
    test_write(test_path(images), "\0\0\x0d\3", 4);
    images_expect_failure(path, &options, "0x0d");
    test_write(test_path(images), "PK\3\4....", 8);
    images_expect_failure(path, &options, "not an IDX file");
    test_write(test_path(images), "\0\0\10\3\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", 16);
    images_expect_failure(path, &options, "truncated");
    unlink(test_path(images));
    for (size_t cut = 1; cut < 60; cut += 3) {
        write_idx("idx/train-images.gz", COUNT, 1, cut, 0);
        images_expect_failure(path, &options, "train-images.gz|truncated");
    }
    write_idx("idx/train-images.gz", COUNT, 1, 0, 0);
    size_t size;
    char *bytes = test_read(test_path("idx/train-images.gz"), &size);
    bytes[size - 6] ^= 1; /* the checksum */
    test_write(test_path("idx/train-images.gz"), bytes, size);
    free(bytes);
    images_expect_failure(path, &options, "train-images.gz|damaged");
    uint8_t *pixels = calloc(1, 16 + (1 << 20)); /* a million images of one pixel in a kilobyte */
    memcpy(pixels, "\0\0\10\3\0\20\0\0\0\0\0\1\0\0\0\1", 16);
    gzFile tiny = gzopen(test_path("idx/train-images.gz"), "wb9");
    assert_int_equal(gzwrite(tiny, pixels, 16 + (1 << 20)), 16 + (1 << 20));
    gzclose(tiny);
    free(pixels);
    images_expect_failure(path, &options, "train-images.gz|1048576 images, which take");
    write_idx("idx/train-images.gz", COUNT, 1, 0, 0);
    write_idx("idx/t10k-images", 9, 3, 0, 0);
    write_idx("idx/t10k-labels", 9, 0, 0, 0);
    images_expect_failure(path, &options, "t10k-images|must have the same size");
    write_idx("idx/train-images", COUNT, 1, 0, 0);
    images_expect_failure(path, &options, "both train-images and train-images.gz");
}

static void a_class_only_in_the_test_part_is_refused(void **state) {
    (void)state;
    const char *path = images_lasting(test_folder("fewer"));
    uint8_t bytes[64];
    write_idx("fewer/train-images", COUNT, 1, 0, 0);
    write_idx("fewer/train-labels", COUNT, 0, 0, 0);
    write_idx("fewer/t10k-images", 5, 1, 0, 0);
    size_t size = make_idx(bytes, 5, 0);
    bytes[size - 1] = 7;
    test_write(test_path("fewer/t10k-labels"), bytes, size);
    cleat_image_options options = images_small_options();
    images_expect_failure(path, &options, "t10k-00004|'7'|training split has 0, 1, 2");
}

/* --- CIFAR ---------------------------------------------------------------------------------------------------- */

static void write_cifar(const char *name, int records, int most, int more) {
    size_t size = (size_t)(records * 3073 + more);
    uint8_t *bytes = calloc(size + 1, 1);
    assert_non_null(bytes);
    for (int i = 0; i < records; ++i) {
        bytes[i * 3073] = (uint8_t)(i % most);
        for (int k = 0; k < 3072; ++k) bytes[i * 3073 + 1 + k] = (uint8_t)(i * 5 + k / 1024 * 50 + k % 1024 / 8);
    }
    test_write(test_path(name), bytes, size);
    free(bytes);
}

static void cifar_files_are_read(void **state) {
    (void)state;
    const char *path = images_lasting(test_folder("cifar"));
    cleat_image_options options = images_small_options();
    options.size = 32;
    write_cifar("cifar/data_batch_1.bin", 6, 2, 0);
    write_cifar("cifar/data_batch_2.bin", 5, 2, 0);
    write_cifar("cifar/test_batch.bin", 4, 2, 0);
    test_write_text(test_path("cifar/batches.meta.txt"), "zebra\r\n\napple \n\n");
    cleat_dataset *dataset = images_open_ok(path, &options);
    static float image[32 * 32 * 3];
    cleat_image_info info = cleat_image_describe(dataset);
    assert_true(info.channels == 3 && info.classes == 2 && info.samples[0] == 11 && info.samples[1] == 4);
    assert_string_equal(cleat_images_class(dataset, 0), "zebra"); /* in numerical order */
    assert_string_equal(cleat_images_class(dataset, 1), "apple");
    assert_int_equal(images_fill(dataset, images_sample_called(dataset, "data_batch_2-00003"), NULL, image), 1);
    double step = image[8 * 3] - image[0];
    assert_true(step > 0);
    for (int i = 0; i < 1024; ++i) assert_true(fabs(image[3 * i] - image[0] - step * (i / 8)) < 1e-3);
    cleat_dataset_destroy(dataset);
    write_cifar("cifar/test_batch.bin", 4, 3, 0);
    images_expect_failure(path, &options, "test_batch.bin|label 2 of record 2|2 classes, 0 to 1");
    unlink(test_path("cifar/batches.meta.txt"));
    images_expect_failure(path, &options, "test_batch-00002|'2'");
    write_cifar("cifar/test_batch.bin", 4, 2, 5);
    images_expect_failure(path, &options, "test_batch.bin|not a multiple of the record size 3073");
    write_cifar("cifar/test_batch.bin", 4, 2, 4);
    images_expect_failure(path, &options, "test_batch.bin|CIFAR-100");
    write_cifar("cifar/test_batch.bin", 0, 2, 0);
    images_expect_failure(path, &options, "test_batch.bin|0 bytes");
    test_folder("cifar100");
    write_cifar("cifar100/train.bin", 1, 2, 1);
    test_write_text(test_path("cifar100/fine_label_names.txt"), "a\n");
    images_expect_failure(test_path("cifar100"), &options, "CIFAR-100");
}

/* --- memory --------------------------------------------------------------------------------------------------- */

static void memory_that_runs_out_is_an_error(void **state) {
    (void)state;
    const char *path = images_lasting(test_folder("memory_idx"));
    cleat_image_options options = images_small_options();
    write_idx("memory_idx/train-images.gz", 5, 1, 0, 0);
    write_idx("memory_idx/train-labels", 5, 0, 0, 0);
    options.channels = 3;
    images_expect_memory_errors(path, &options);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(idx_files_are_read),        cmocka_unit_test(idx_files_are_predicted),
        cmocka_unit_test(bad_idx_files_are_refused), cmocka_unit_test(a_class_only_in_the_test_part_is_refused),
        cmocka_unit_test(cifar_files_are_read),      cmocka_unit_test(memory_that_runs_out_is_an_error),
    };
    return cmocka_run_group_tests(tests, images_set_up, test_remove_all);
}
