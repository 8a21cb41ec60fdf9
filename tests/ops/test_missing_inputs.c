/* NULL for any required input of an operation is an error of the graph. */
/* ctest: device */
#include "cleat/ops.h"
#include "harness.h"

/* Each call has one required input that is NULL; `x` is a tensor. */
#define CALLS(X)                                                                                                       \
    X(cleat_cast(graph, NULL, CLEAT_F16))                                                                              \
    X(cleat_reshape(graph, NULL, 1, shape))                                                                            \
    X(cleat_add(graph, NULL, x))                                                                                       \
    X(cleat_add(graph, x, NULL))                                                                                       \
    X(cleat_subtract(graph, x, NULL))                                                                                  \
    X(cleat_multiply(graph, NULL, x))                                                                                  \
    X(cleat_slice(graph, NULL, 0, 0, 1))                                                                               \
    X(cleat_permute(graph, NULL, axes))                                                                                \
    X(cleat_embedding(graph, NULL, x, CLEAT_F32))                                                                      \
    X(cleat_embedding(graph, x, NULL, CLEAT_F32))                                                                      \
    X(cleat_positional_encoding(graph, NULL, NULL))                                                                    \
    X(cleat_linear(graph, NULL, x, x, x))                                                                              \
    X(cleat_linear(graph, x, NULL, x, x))                                                                              \
    X(cleat_layer_norm(graph, NULL, x, x, 1e-5f))                                                                      \
    X(cleat_layer_norm(graph, x, NULL, x, 1e-5f))                                                                      \
    X(cleat_gelu(graph, NULL))                                                                                         \
    X(cleat_relu(graph, NULL))                                                                                         \
    X(cleat_sigmoid(graph, NULL))                                                                                      \
    X(cleat_softmax(graph, NULL))                                                                                      \
    X(cleat_attention(graph, NULL, x, 1))                                                                              \
    X(cleat_local_attention(graph, NULL, x, 1, 2))                                                                     \
    X(cleat_causal_attention(graph, NULL, NULL, NULL, 1, 1, 0, 0))                                                     \
    X(cleat_cross_attention(graph, NULL, x, 1))                                                                        \
    X(cleat_cross_attention(graph, x, NULL, 1))                                                                        \
    X(cleat_lstm(graph, NULL, x, x, y, y))                                                                             \
    X(cleat_lstm(graph, x, x, x, NULL, y))                                                                             \
    X(cleat_lstm(graph, x, x, x, y, NULL))                                                                             \
    X(cleat_mean_pool(graph, NULL, x))                                                                                 \
    X(cleat_select_row(graph, NULL, NULL, CLEAT_ROW_LAST))                                                             \
    X(cleat_dropout(graph, NULL, x, 0.5f))                                                                             \
    X(cleat_dropout(graph, x, NULL, 0.5f))                                                                             \
    X(cleat_cross_entropy(graph, NULL, x, x, 0))                                                                       \
    X(cleat_cross_entropy(graph, x, NULL, x, 0))                                                                       \
    X(cleat_cross_entropy(graph, x, x, NULL, 0))                                                                       \
    X(cleat_binary_cross_entropy(graph, x, x, NULL, 1))                                                                \
    X(cleat_mse_loss(graph, x, NULL, x))                                                                               \
    X(cleat_sum(graph, none, 2))                                                                                       \
    X(cleat_conv2d(graph, NULL, x, x, 1, 0))                                                                           \
    X(cleat_conv2d(graph, x, NULL, x, 1, 0))                                                                           \
    X(cleat_depthwise_conv2d(graph, x, NULL, x))                                                                       \
    X(cleat_max_pool(graph, NULL, 2, 2, 0))                                                                            \
    X(cleat_average_pool(graph, NULL, 2, 2, 0))                                                                        \
    X(cleat_resize(graph, NULL, 4, 4))                                                                                 \
    X(cleat_concat(graph, none, 2))                                                                                    \
    X(cleat_depth_to_space(graph, NULL, 2))                                                                            \
    X(cleat_batch_norm(graph, NULL, &(cleat_batch_norm_spec){.gamma = x, .beta = x}, NULL))                            \
    X(cleat_batch_norm(graph, x, &(cleat_batch_norm_spec){.gamma = x}, NULL))                                          \
    X(cleat_mask_loss(graph, x, NULL, x, &(cleat_mask_loss_spec){.positive_weight = 1}))                               \
    X(cleat_rigid_chain(graph, NULL, x, NULL))

static void missing_inputs_are_errors(void **state) {
    const int64_t shape[] = {4, 4};
    const int axes[] = {0, 1};
    (void)state;
#define CHECK(call)                                                                                                    \
    {                                                                                                                  \
        cleat_graph *graph = op_graph();                                                                               \
        cleat_tensor *x = cleat_input(graph, "x", CLEAT_F32, 2, shape), *none[] = {x, NULL};                           \
        cleat_tensor *y = cleat_input(graph, "y", CLEAT_F32, 1, shape);                                                \
        (void)axes, (void)none, (void)y;                                                                               \
        print_message("%s\n", #call);                                                                                  \
        assert_null(call);                                                                                             \
        op_graph_refused(graph, CLEAT_ERR_ARGUMENT, "op '", "is NULL, but it is not optional");                        \
    }
    CALLS(CHECK)
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(missing_inputs_are_errors)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
