/* cleat export: writes a checkpoint in a form that other programs read. */
#include "cli.h"

#include <cleat/onnx.h>
#include <cleat/train.h>
#include <cleat/weights.h>
#include <stdio.h>
#include <string.h>

typedef struct request {
    const char *checkpoint, *out, *data;
    bool external_data, json;
} request;

typedef struct format {
    const char *name;
    bool is_onnx;
    cleat_weights_format weights; /* of the others */
} format;

static const format formats[] = {{.name = "onnx", .is_onnx = true},
                                 {.name = "hf", .weights = CLEAT_WEIGHTS_HF},
                                 {.name = "timm", .weights = CLEAT_WEIGHTS_TIMM},
                                 {.name = "cleat", .weights = CLEAT_WEIGHTS_CLEAT},
                                 {.name = "peft", .weights = CLEAT_WEIGHTS_PEFT},
                                 {.name = "gguf", .weights = CLEAT_WEIGHTS_GGUF_F16},
                                 {.name = "gguf-f32", .weights = CLEAT_WEIGHTS_GGUF_F32},
                                 {.name = "gguf-bf16", .weights = CLEAT_WEIGHTS_GGUF_BF16},
                                 {.name = "gguf-q8_0", .weights = CLEAT_WEIGHTS_GGUF_Q8_0},
                                 {.name = "gguf-lora", .weights = CLEAT_WEIGHTS_GGUF_LORA}};

static void print_value(const char *what, const cleat_onnx_value *value) {
    printf("  %-6s %-10s %s %s\n", what, value->name, value->dtype, value->shape);
}

static void print_text(const request *asked, const cleat_onnx_report *report) {
    char bytes[CLEAT_BYTES_TEXT];
    printf("%s: %zu nodes, %lld parameters, %s%s\n", asked->out, report->nodes, (long long)report->parameters,
           cleat_bytes_text(report->bytes, bytes), report->external_data ? ", with values in a file .data" : "");
    for (size_t i = 0; i < report->n_inputs; ++i) print_value("input", &report->inputs[i]);
    print_value("output", &report->output);
    if (report->length)
        printf("  every sequence has length %lld, which cannot vary in this network; pad shorter ones\n",
               (long long)report->length);
}

static void add_json_value(cleat_string *json, const char *name, const cleat_onnx_value *value) {
    json_add(json, json_open(name, '{'), json_text("name", value->name), json_text("dtype", value->dtype),
             json_text("shape", value->shape), json_close('}'));
}

static void print_json(const request *asked, const cleat_onnx_report *report) {
    cleat_string json = {.spaced = true};
    json_add(&json, json_open(NULL, '{'), json_text("format", "onnx"), json_text("file", asked->out),
             json_count("nodes", (int64_t)report->nodes), json_count("parameters", report->parameters),
             json_count("bytes", report->bytes), json_bool("external_data", report->external_data),
             report->length ? json_count("length", report->length) : json_text("length", NULL),
             json_open("inputs", '['));
    for (size_t i = 0; i < report->n_inputs; ++i) add_json_value(&json, NULL, &report->inputs[i]);
    json_add(&json, json_close(']'));
    add_json_value(&json, "output", &report->output);
    json_add(&json, json_close('}'));
    cli_print_json(&json);
}

static cleat_status write_onnx(const cleat_profile *profile, const request *asked, cleat_error *error) {
    const cleat_onnx_options options = {.data = asked->data, .external_data = asked->external_data};
    cleat_onnx_report report;
    cleat_status status = cleat_export_onnx(profile, asked->checkpoint, &options, asked->out, &report, error);
    if (status) return status;
    (asked->json ? print_json : print_text)(asked, &report);
    return CLEAT_OK;
}

static cleat_status write_weights(const cleat_profile *profile, const request *asked, const format *wanted,
                                  cleat_error *error) {
    cleat_weights_export_report report;
    char bytes[CLEAT_BYTES_TEXT];
    cleat_status status = cleat_export_weights(profile, asked->checkpoint, wanted->weights, asked->out, &report, error);
    if (status) return status;
    if (asked->json) {
        cleat_string json = {.spaced = true};
        json_add(&json, json_open(NULL, '{'), json_text("format", wanted->name), json_text("folder", asked->out),
                 json_count("tensors", (int64_t)report.tensors), json_count("files", (int64_t)report.files),
                 json_count("bytes", report.bytes), json_close('}'));
        cli_print_json(&json);
    } else {
        printf("%s: %zu tensors in %zu files, %s\n", asked->out, report.tensors, report.files,
               cleat_bytes_text(report.bytes, bytes));
    }
    return CLEAT_OK;
}

static int run(const cli_command *command, int argc, char **argv) {
    const char *name = NULL;
    request asked = {.out = NULL};
    cli_list assignments = {.count = 0}, words = {.count = 0};
    const cli_option options[] = {
        {"--format", CLI_TEXT, &name, "NAME",
         "hf: a folder for from_pretrained of transformers; timm: one for timm; cleat: weights without training state; "
         "peft: the adapters of a LoRA training; gguf: a causal language model in f16 as model.gguf for llama.cpp "
         "(gguf-f32, "
         "gguf-bf16, gguf-q8_0: in these types; gguf-lora: its adapters, for llama-cli --lora); "
         "onnx: the network's predictions, opset 17, for ONNX Runtime and others"},
        {"--out", CLI_TEXT, &asked.out, "PATH", "folder to write, or for onnx the file, for example model.onnx"},
        {"--data", CLI_TEXT, &asked.data, "PATH",
         "maps of the size that the exported network takes (emberformer only); default: those of the training"},
        {"--external-data", CLI_FLAG, &asked.external_data, NULL,
         "write the values of the parameters to a second file, FILE.data, as is always done above 2 GB"},
        CLI_SET(&assignments),
        {"--json", CLI_FLAG, &asked.json, NULL, "print one JSON object"},
        {NULL, CLI_FLAG, NULL, NULL, NULL}};
    int exit_code;
    if (!cli_parse(command, options, argc, argv, &words, &exit_code)) return exit_code;
    if (words.count != 1)
        return cli_usage(command, "%s", words.count ? "give one run or checkpoint" : "which run or checkpoint?");
    if (!name) return cli_usage(command, "--format is required: hf, timm, cleat, peft, gguf or onnx");
    const format *chosen = NULL;
    char known[192] = "";
    for (size_t i = 0, used = 0; i < sizeof formats / sizeof *formats; ++i) {
        if (strcmp(formats[i].name, name) == 0) chosen = &formats[i];
        if (used < sizeof known)
            used += (size_t)snprintf(known + used, sizeof known - used, "%s%s", i ? ", " : "", formats[i].name);
    }
    if (!chosen) return cli_usage(command, "--format %s: no such format; the formats are %s", name, known);
    if (!asked.out) return cli_usage(command, "--out is required: the folder or file to write");
    asked.checkpoint = words.items[0];
    cleat_error error = {0};
    cleat_profile *profile = NULL;
    cleat_status status =
        cleat_profile_of_checkpoint(asked.checkpoint, assignments.items, assignments.count, &profile, &error);
    if (!status)
        status = chosen->is_onnx ? write_onnx(profile, &asked, &error) : write_weights(profile, &asked, chosen, &error);
    cleat_profile_destroy(profile);
    return cli_finish(status, &error);
}

const cli_command cli_export = {
    "export", "RUN --format NAME --out PATH [--data PATH] [--external-data] [--set section.key=value ...] [--json]",
    "write a checkpoint in a form that other programs read", run};
