/* Finds the files of a path of texts, and the split of each. */
#include "data/text/set.h"
#include "platform/text.h"

#include "core/files.h"

#include <stdio.h>
#include <string.h>

static const char *const words[CLEAT_SPLITS][5] = {
    [CLEAT_SPLIT_TRAIN] = {"train"},
    [CLEAT_SPLIT_VAL] = {"val", "valid", "validation", "dev"},
    [CLEAT_SPLIT_TEST] = {"test"},
};

static bool is_table(const char *name) {
    return cleat_ends_in(name, ".csv .tsv .tab");
}

/* Whether plain lines suffice, because no columns are needed. */
static bool takes_lines(const cleat_text_options *options) {
    return options->task == CLEAT_TEXT_CLASSES && !options->labelled;
}

/* Of a causal language model: conversations, tables, or plain texts. */
static bool is_causal(const char *name) {
    return cleat_ends_in(name, ".jsonl .ndjson .json .txt .text") || is_table(name);
}

/* Whether the name is that of a split's table, or of its plain lines: "train.csv" is the train table,
 * "training.csv" is not. */
static bool is_table_of(const char *name, const cleat_text_options *options, cleat_split split) {
    for (size_t i = 0; words[split][i]; ++i) {
        size_t length = strlen(words[split][i]);
        if (strncasecmp(name, words[split][i], length) == 0 && name[length] == '.' && !strchr(name + length + 1, '.') &&
            (options->task == CLEAT_TEXT_CAUSAL
                 ? is_causal(name)
                 : is_table(name) || (takes_lines(options) && options->plain && cleat_ends_in(name, ".txt"))))
            return true;
    }
    return false;
}

static bool contains(const char *name, cleat_split split) {
    for (size_t i = 0; words[split][i]; ++i)
        if (strcasestr(name, words[split][i])) return true;
    return false;
}

/* Whether the name is that of a split's CoNLL file. A name that contains several of the words belongs to the
 * first split: train before val before test. */
static bool is_conll_of(const char *name, cleat_split split) {
    for (int before = 0; before < (int)split; ++before)
        if (contains(name, (cleat_split)before)) return false;
    return contains(name, split) && !cleat_ends_in(name, ".csv");
}

/* Writes the path of the folder's file for `split`, or "" if there is none. */
static cleat_status guess(const char *folder, const cleat_text_options *options, cleat_split split, char path[4096],
                          cleat_error *error) {
    cleat_name_list listing = {0};
    const char *found = NULL;
    cleat_status status = cleat_listing_read(folder, NULL, &listing, error);
    *path = 0;
    for (size_t i = 0; i < listing.count && !status; ++i) {
        const char *name = listing.names[i];
        if (!(options->task == CLEAT_TEXT_TAGS ? is_conll_of(name, split) : is_table_of(name, options, split)))
            continue;
        if (found)
            status = cleat_fail(error, CLEAT_ERR_ARGUMENT,
                                "%s: both %s and %s may be the %s file; choose one with data.%s_file", folder, found,
                                name, cleat_split_name(split), cleat_split_name(split));
        found = name;
    }
    if (!status && found) status = cleat_path_join(folder, found, path, 4096, error);
    cleat_name_list_free(&listing);
    return status;
}

static cleat_status find_part(const char *folder, const cleat_text_options *options, cleat_split split,
                              cleat_text_files *files, cleat_error *error) {
    const char *const named[CLEAT_SPLITS] = {options->train_file, options->val_file, options->test_file};
    cleat_text_file *file = &files->files[files->count];
    const char *name = cleat_text_option(named[split]);
    *file = (cleat_text_file){.split = split, .guessed = !*name};
    if (split != CLEAT_SPLIT_TEST) file->fold = options->fold;
    cleat_status status = *name ? cleat_path_join(folder, name, file->path, sizeof file->path, error)
                                : guess(folder, options, split, file->path, error);
    if (status || !*file->path) return status;
    if (!cleat_file_exists(file->path))
        return cleat_fail(error, CLEAT_ERR_NOT_FOUND, "%s: no such file (data.%s_file)", file->path,
                          cleat_split_name(split));
    file->lines = takes_lines(options) && !is_table(file->path) && cleat_text_may_be_lines(file->path);
    ++files->count;
    return CLEAT_OK;
}

static bool has_part(const cleat_text_files *files, cleat_split split) {
    for (size_t i = 0; i < files->count; ++i)
        if (files->files[i].split == split) return true;
    return false;
}

static cleat_status find_in_folder(const char *folder, const cleat_text_options *options, cleat_text_files *files,
                                   cleat_error *error) {
    static const char *const wanted[] = {[CLEAT_TEXT_CLASSES] = "train.csv or train.tsv",
                                         [CLEAT_TEXT_CAUSAL] = "train.jsonl, train.csv or train.txt",
                                         [CLEAT_TEXT_TAGS] = "a CoNLL file with train in its name"};
    static const char lines[] = "train.csv, train.tsv or train.txt";
    bool fits = (options->labelled || options->plain) && !*cleat_text_option(options->fitted);
    for (int split = 0; split < CLEAT_SPLITS; ++split) {
        cleat_status status = find_part(folder, options, (cleat_split)split, files, error);
        if (status) return status;
    }
    if (!files->count || (fits && !has_part(files, CLEAT_SPLIT_TRAIN)))
        return cleat_fail(error, CLEAT_ERR_NOT_FOUND,
                          "%s: no training file in this folder: name it %s, or set data.train_file%s", folder,
                          options->plain ? lines : wanted[options->task],
                          options->plain ? "; join files of lines into one" : "");
    for (size_t i = 0; i < files->count; ++i) files->files[i].several = files->count > 1;
    if (has_part(files, CLEAT_SPLIT_TRAIN)) {
        files->files[0].val_fraction =
            has_part(files, CLEAT_SPLIT_VAL) || options->fold.count ? 0 : options->val_fraction;
        files->files[0].test_fraction = has_part(files, CLEAT_SPLIT_TEST) ? 0 : options->test_fraction;
    }
    return CLEAT_OK;
}

cleat_status cleat_text_find_files(const char *path, const cleat_text_options *options, cleat_text_files *files,
                                   cleat_error *error) {
    cleat_text_file *only = &files->files[0];
    files->count = 0;
    if (cleat_folder_exists(path)) return find_in_folder(path, options, files, error);
    if (!cleat_file_exists(path))
        return cleat_fail(error, CLEAT_ERR_NOT_FOUND, "%s: no such file or folder (data.path)", path);
    const bool causal = options->task == CLEAT_TEXT_CAUSAL;
    if (causal && !options->labelled ? !cleat_text_may_be_lines(path) && !is_causal(path) : causal && !is_causal(path))
        return cleat_fail(error, CLEAT_ERR_NOT_SUPPORTED,
                          "%s: unsupported file for a language model; use JSON lines (.jsonl), a table (.csv, .tsv) or "
                          "plain texts (.txt)",
                          path);
    bool lines = takes_lines(options) && !is_table(path) && cleat_text_may_be_lines(path);
    if (takes_lines(options) && options->plain && !is_table(path) && !lines)
        return cleat_fail(error, CLEAT_ERR_NOT_SUPPORTED,
                          "%s: unsupported file; use plain lines, a text each (.txt), or a table, .csv or .tsv (JSON "
                          "lines, with pandas: read_json(OLD, lines=True).to_csv(NEW, index=False))",
                          path);
    if (options->task == CLEAT_TEXT_CLASSES ? !is_table(path) && !lines : !causal && cleat_ends_in(path, ".csv"))
        return cleat_fail(error, CLEAT_ERR_NOT_SUPPORTED,
                          options->task == CLEAT_TEXT_CLASSES
                              ? "%s: unsupported file for text classification; use a table, .csv or .tsv (a workbook: "
                                "save the sheet as CSV; for predictions also plain lines, .txt)"
                              : "%s: unsupported file for tagging; use CoNLL files (word, tab, tag), not a table (for "
                                "predictions also plain sentences, .txt, one a line)",
                          path);
    if (options->task == CLEAT_TEXT_TAGS && !options->labelled) {
        cleat_status status = cleat_text_has_sentences(path, &lines, error);
        if (status) return status;
    }
    if (lines && cleat_text_has_pairs(options))
        return cleat_fail(error, CLEAT_ERR_NOT_SUPPORTED,
                          "%s: plain lines have one text each; for pairs of texts (data.text_pair_column) use a table",
                          path);
    *only = (cleat_text_file){.split = CLEAT_SPLIT_TRAIN,
                              .val_fraction = options->fold.count ? 0 : options->val_fraction,
                              .test_fraction = options->test_fraction,
                              .fold = options->fold,
                              .lines = lines};
    if ((size_t)snprintf(only->path, sizeof only->path, "%s", path) >= sizeof only->path)
        return cleat_fail(error, CLEAT_ERR_ARGUMENT, "path too long: %.100s...", path);
    files->count = 1;
    return CLEAT_OK;
}
