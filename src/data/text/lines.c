/* Reader of plain lines, for prediction: one text a line, or one sentence, which is split into words. */
#include "data/text/set.h"
#include "platform/text.h"

#include "core/files.h"
#include "core/memory.h"

#include <string.h>

/* The next line without its blanks at both ends; *at moves behind it. */
static cleat_stretch next_line(char **at, char *end) {
    char *start = *at, *stop = memchr(start, '\n', (size_t)(end - start));
    *at = stop ? stop + 1 : end;
    return cleat_text_trim((cleat_stretch){start, stop ? stop : end});
}

/* ASCII only: a byte of another UTF-8 character is part of a word. '@', '#', '-' and others begin words of tweets. */
static bool opens(char c) {
    return c && strchr("([{\"'`", c);
}

static bool closes(char c) {
    return c && strchr(")]}\"'`.,;:!?", c);
}

static cleat_status add_word(cleat_text_set *set, const char *at, const char *end, cleat_error *error) {
    if (at == end) return CLEAT_OK;
    return cleat_text_add_unit(set, at, (size_t)(end - at), CLEAT_TEXT_NO_LABEL, error);
}

/* Number of equal characters at the start: "..." and "!!" stay one word. */
static size_t run_of(const char *at, const char *end) {
    size_t size = 1;
    while (at + size < end && at[size] == *at) ++size;
    return size;
}

/* A word between blanks, without its punctuation, which becomes separate words, as in CoNLL files. */
static cleat_status add_words_of(cleat_text_set *set, const char *at, const char *end, cleat_error *error) {
    cleat_status status = CLEAT_OK;
    for (size_t size; at < end && opens(*at) && !status; at += size) {
        size = run_of(at, end);
        status = add_word(set, at, at + size, error);
    }
    const char *stop = end;
    while (stop > at && closes(stop[-1])) --stop;
    if (!status) status = add_word(set, at, stop, error);
    for (size_t size; stop < end && !status; stop += size) {
        size = run_of(stop, end);
        status = add_word(set, stop, stop + size, error);
    }
    return status;
}

static cleat_status add_sentence(cleat_text_set *set, cleat_stretch line, cleat_error *error) {
    cleat_status status = CLEAT_OK;
    while (line.at < line.end && !status) {
        char *end = line.at;
        while (end < line.end && !cleat_text_is_blank(*end)) ++end;
        status = add_words_of(set, line.at, end, error);
        line = cleat_text_trim((cleat_stretch){end, line.end});
    }
    return status;
}

/* Whether a line may be one of a CoNLL file: a word alone, columns separated by tabs, or a tag at the end. */
static bool may_be_conll(cleat_stretch line) {
    const size_t size = (size_t)(line.end - line.at);
    char *blank = memrchr(line.at, ' ', size);
    return !blank || memchr(line.at, '\t', size) || strncmp(line.at, "# ", 2) == 0 ||
           cleat_text_is_tag((cleat_stretch){blank + 1, line.end});
}

cleat_status cleat_text_has_sentences(const char *path, bool *sentences, cleat_error *error) {
    char *text;
    size_t size;
    bool found = cleat_ends_in(path, ".lines");
    if (!found && (!*cleat_name_ending(path) || cleat_ends_in(path, ".txt .text"))) {
        cleat_status status = cleat_file_read_text(path, &text, &size, error);
        if (status) return status;
        for (char *at = text; at < text + size && !found;) {
            const cleat_stretch line = next_line(&at, text + size);
            found = line.at < line.end && !may_be_conll(line);
        }
        cleat_free(text);
    }
    *sentences = found;
    return CLEAT_OK;
}

bool cleat_text_may_be_lines(const char *path) {
    return !cleat_ends_in(path, ".json .jsonl .parquet .xlsx .xls .ods .html .xml .pdf .doc .docx");
}

/* Room for all lines, each with its number and two zeros: a file of gigabytes is kept once, not twice. */
static void reserve(cleat_text_set *set, const cleat_source *source) {
    enum { NUMBER = 12 };
    size_t lines = 1;
    for (const char *at = source->at; (at = memchr(at, '\n', (size_t)(source->end - at))); ++at) ++lines;
    if (set->options->task == CLEAT_TEXT_CLASSES)
        cleat_string_reserve(&set->bytes, (size_t)(source->end - source->at) + NUMBER * lines);
}

static cleat_status add_line(cleat_text_set *set, const cleat_text_file *file, cleat_stretch line, size_t number,
                             cleat_error *error) {
    const bool tags = set->options->task == CLEAT_TEXT_TAGS;
    if (line.at == line.end) {
        ++set->summary.skipped;
        return CLEAT_OK;
    }
    cleat_status status = cleat_text_begin_row(set, file, NULL, number, error);
    if (status) return status;
    status = tags ? add_sentence(set, line, error) : add_word(set, line.at, line.end, error);
    return status;
}

cleat_status cleat_text_read_lines(const cleat_text_file *file, cleat_text_set *set, cleat_error *error) {
    cleat_source source;
    cleat_status status = cleat_text_source(file, set, &source, error);
    if (status) return status;
    cleat_log(CLEAT_LOG_INFO, "%s: read as plain lines, %s", file->path,
              set->options->task == CLEAT_TEXT_TAGS
                  ? "a sentence each: words are split at blanks, and punctuation from words"
                  : "a text each; a table needs the extension .csv or .tsv");
    reserve(set, &source);
    for (size_t number = 1; source.at < source.end && !status; ++number)
        status = add_line(set, file, next_line(&source.at, source.end), number, error);
    cleat_source_close(&source);
    return status;
}
