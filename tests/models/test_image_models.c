/* SegFormer and ResNet: published parameter counts, shapes for images of any size, and refusal of images that
 * are too small. */
/* ctest: device */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "cleat/models.h"
#include "cleat/profile.h"
#include "graph/graph.h"
#include "models/model.h"
#include "models/published/images.h"
#include "nn/resnet.h"

typedef struct built {
    cleat_store *store;
    cleat_graph *graph;
    cleat_model_graph model;
} built;

static built build(const char *const *settings, cleat_mode mode, int64_t batch, int64_t length) {
    built made;
    cleat_profile *profile;
    cleat_model *model;
    cleat_error error = {0};
    assert_int_equal(cleat_profile_create(&profile, NULL), CLEAT_OK);
    for (; *settings; ++settings)
        if (cleat_profile_set(profile, *settings, &error) != CLEAT_OK) fail_msg("%s", error.text);
    assert_int_equal(cleat_profile_create_model(profile, &model, NULL), CLEAT_OK);
    assert_int_equal(cleat_store_create(&made.store, NULL), CLEAT_OK);
    assert_int_equal(cleat_graph_create(made.store, "network", &made.graph, NULL), CLEAT_OK);
    cleat_model_build(model, made.graph, mode, batch, length, &made.model);
    cleat_model_destroy(model);
    cleat_profile_destroy(profile);
    return made;
}

static void drop(built *made) {
    cleat_graph_destroy(made->graph);
    cleat_store_destroy(made->store);
}

static int64_t parameters_of(const built *made) {
    int64_t sum = 0;
    for (size_t i = 0; i < made->store->count; ++i) sum += cleat_tensor_elements(made->store->params[i]);
    return sum;
}

static void expect_parameters(const char *const *settings, int64_t length, int64_t expected) {
    cleat_error error = {0};
    built made = build(settings, CLEAT_MODE_PREDICT, 1, length);
    if (cleat_graph_status(made.graph, &error) != CLEAT_OK) fail_msg("%s", error.text);
    print_message("%s: %lld parameters\n", settings[1], (long long)parameters_of(&made));
    assert_int_equal(parameters_of(&made), expected);
    drop(&made);
}

/* As published, SegFormers have the 150 classes of ADE20K and ResNets a thousand. */
static void as_many_parameters_as_published(void **state) {
    static const int64_t segformers[] = {3752694, 13715798, 27461974, 47337814, 64108374, 84708694};
    (void)state;
    for (size_t b = 0; b < sizeof segformers / sizeof *segformers; ++b) {
        char backbone[32];
        snprintf(backbone, sizeof backbone, "model.backbone=b%zu", b);
        expect_parameters((const char *const[]){"model.type=mask_segformer", backbone, "data.classes=150", NULL}, 64,
                          segformers[b]);
    }
    /* one output per pixel */
    expect_parameters((const char *const[]){"model.type=mask_segformer", "model.backbone=b0", NULL}, 64,
                      3752694 - 149 * 257);
    expect_parameters((const char *const[]){"model.type=image_resnet", "model.depth=18", NULL}, 64,
                      11689512 - 990 * 513);
    expect_parameters((const char *const[]){"model.type=image_resnet", "model.depth=34", NULL}, 64,
                      21797672 - 990 * 513);
    expect_parameters((const char *const[]){"model.type=image_resnet", "model.depth=50", NULL}, 64,
                      25557032 - 990 * 2049);
    expect_parameters((const char *const[]){"model.type=image_resnet", "model.depth=101", NULL}, 64,
                      44549160 - 990 * 2049);
    expect_parameters((const char *const[]){"model.type=image_resnet", "model.depth=152", NULL}, 64,
                      60192808 - 990 * 2049);
    /* torchvision's wide_resnet50_2 */
    expect_parameters((const char *const[]){"model.type=image_resnet", "model.depth=50", "model.expansion=2",
                                            "model.widths=128 256 512 1024", NULL},
                      64, 68883240 - 990 * 2049);
    expect_parameters((const char *const[]){"model.type=image_vit", "model.d_model=384", "model.heads=6",
                                            "model.layers=12", "model.d_ff=1536", NULL},
                      224, 22050664 - 990 * 385);
    expect_parameters((const char *const[]){"model.type=image_vit", "model.d_model=768", "model.heads=12",
                                            "model.layers=12", "model.d_ff=3072", "model.patch=32", NULL},
                      224, 88224232 - 990 * 769);
    expect_parameters((const char *const[]){"model.type=image_convnext", "model.backbone=tiny", NULL}, 64,
                      28589128 - 990 * 769);
    expect_parameters((const char *const[]){"model.type=image_convnext", "model.backbone=small", NULL}, 64,
                      50223688 - 990 * 769);
    expect_parameters((const char *const[]){"model.type=image_convnext", "model.backbone=base", NULL}, 64,
                      88591464 - 990 * 1025);
    expect_parameters((const char *const[]){"model.type=image_convnext", "model.backbone=large", NULL}, 64,
                      197767336 - 990 * 1537);
}

static void images_of_any_size(void **state) {
    (void)state;
    static const int64_t sides[] = {33, 64, 97, 130};
    for (size_t i = 0; i < sizeof sides / sizeof *sides; ++i) {
        cleat_error error = {0};
        built made = build((const char *const[]){"model.type=mask_segformer", "model.stem_stride=3", NULL},
                           CLEAT_MODE_TRAIN, 2, sides[i]);
        if (cleat_graph_status(made.graph, &error) != CLEAT_OK) fail_msg("%lld: %s", (long long)sides[i], error.text);
        const int64_t shape[4] = {2, sides[i], sides[i], 1};
        assert_memory_equal(made.model.output->shape, shape, sizeof shape);
        drop(&made);
    }
}

static void too_small_images_are_refused(void **state) {
    (void)state;
    cleat_error error = {0};
    built made = build((const char *const[]){"model.type=mask_segformer", NULL}, CLEAT_MODE_TRAIN, 2, 24);
    assert_int_equal(cleat_graph_status(made.graph, &error), CLEAT_ERR_SHAPE);
    assert_non_null(strstr(error.text, "24 x 24"));
    assert_non_null(strstr(error.text, "stem_stride"));
    drop(&made);
}

static const cleat_architecture *published_as(const char *const *settings, bool timm) {
    cleat_profile *profile;
    cleat_model *model;
    cleat_error error = {0};
    assert_int_equal(cleat_profile_create(&profile, NULL), CLEAT_OK);
    for (; *settings; ++settings)
        if (cleat_profile_set(profile, *settings, &error) != CLEAT_OK) fail_msg("%s", error.text);
    assert_int_equal(cleat_profile_create_model(profile, &model, NULL), CLEAT_OK);
    const cleat_architecture *found = model->type->architecture(model, timm);
    cleat_model_destroy(model);
    cleat_profile_destroy(profile);
    return found;
}

/* Residual networks without a counterpart in a library would be exported as files that it refuses. */
static void residual_networks_are_exported_to_libraries_that_have_them(void **state) {
    static const cleat_architecture *const timm = &cleat_published_resnet, *const transformers =
                                                                               &cleat_published_resnet_transformers;
    static const struct {
        const char *setting;
        const cleat_architecture *of_timm, *of_transformers; /* the refused setting */
    } rows[] = {{"model.depth=18", timm, transformers},
                {"model.depth=50", timm, transformers},
                {"model.expansion=2", timm, timm},
                {"model.width=32", transformers, transformers},
                {"model.blocks=2 2 2", transformers, transformers},
                {"model.expansion=3", NULL, NULL},
                {"model.stem=small", NULL, NULL}};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
        const char *const settings[] = {"model.type=image_resnet", rows[i].setting, NULL};
        assert_ptr_equal(published_as(settings, true), rows[i].of_timm);
        assert_ptr_equal(published_as(settings, false), rows[i].of_transformers);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(as_many_parameters_as_published),
        cmocka_unit_test(images_of_any_size),
        cmocka_unit_test(too_small_images_are_refused),
        cmocka_unit_test(residual_networks_are_exported_to_libraries_that_have_them),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
