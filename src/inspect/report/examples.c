/* Predictions beside the truth: images, masks, tagged words, structures, forecasts. */
#include "report/html.h"
#include "report/sections.h"

#include <math.h>
#include <string.h>

/* Appends an <img> if `url` is a base64 image within the file; anything else could load from elsewhere. */
static void add_image(const char *url, const char *alt, cleat_string *page) {
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=";
    static const char *const begins[] = {"data:image/png;base64,", "data:image/jpeg;base64,"};
    for (int i = 0; url && i < 2; ++i) {
        size_t length = strlen(begins[i]);
        if (strncmp(url, begins[i], length) != 0 || strspn(url + length, letters) != strlen(url + length)) continue;
        cleat_html_add(page, "<img alt=\"%s\" src=\"%s\">", alt, url);
        return;
    }
}

static void add_score(const cJSON *example, cleat_string *page) {
    char shown[CLEAT_SHOWN];
    double score = cleat_json_number(example, "score");
    if (!isfinite(score)) return;
    cleat_html_add(page, " <span class=\"score\">%s %s</span>", cleat_json_text(example, "score_name"),
                   cleat_show_number(score, shown));
}

static void add_name(const cJSON *example, cleat_string *page) {
    cleat_html_add(page, "<figcaption class=\"name\">%s", cleat_json_text(example, "name"));
    add_score(example, page);
    cleat_string_add(page, "</figcaption>");
}

/* A class; or numbers, which are neither right nor wrong. */
static void add_class(const cJSON *example, cleat_string *page) {
    char shown[CLEAT_SHOWN];
    const char *truth = cleat_json_text(example, "truth"), *prediction = cleat_json_text(example, "prediction");
    const char *text = cleat_json_text(example, "text");
    const bool judged = truth && strcmp(cleat_json_text(example, "kind"), "class") == 0;
    bool right = truth && prediction && strcmp(truth, prediction) == 0;
    cleat_string_add(page, "<figure class=\"example class %s\" data-drawn=\"class\">",
                     !judged ? ""
                     : right ? "right"
                             : "wrong");
    add_image(cleat_json_text(example, "image"), cleat_json_text(example, "name"), page);
    if (text) cleat_html_add(page, "<blockquote>%s</blockquote>", text);
    cleat_html_add(page, "<p><b class=\"mark\">%s</b> %s", !judged ? "" : right ? "✓" : "✗", prediction);
    double confidence = cleat_json_number(example, "confidence");
    if (isfinite(confidence)) cleat_string_add(page, " <small>%s</small>", cleat_show_share(confidence, shown));
    cleat_string_add(page, "</p>");
    if (truth && !right) cleat_html_add(page, "<p class=\"truth\">truth: %s</p>", truth);
    add_name(example, page);
    cleat_string_add(page, "</figure>");
}

static void add_mask(const cJSON *example, cleat_string *page) {
    static const char *const parts[] = {"image", "truth", "prediction"};
    cleat_string_add(page, "<figure class=\"example mask\" data-drawn=\"mask\"><div class=\"three\">");
    for (int i = 0; i < 3; ++i) {
        const char *shown = i == 0 ? cleat_json_text(example, "image_text") : NULL; /* a part of the sample */
        if (!cleat_json_text(example, parts[i])) continue;
        cleat_string_add(page, "<div>");
        add_image(cleat_json_text(example, parts[i]), parts[i], page);
        cleat_html_add(page, "<small>%s</small></div>", shown ? shown : parts[i]);
    }
    cleat_string_add(page, "</div>");
    add_name(example, page);
    cleat_string_add(page, "</figure>");
}

static const char *item_text(const cJSON *array, int i) {
    const cJSON *item = cJSON_GetArrayItem(array, i);
    return cJSON_IsString(item) ? item->valuestring : "";
}

/* Words with their tags or tokens below; `none`: the tag that means none. */
static void add_words(const cJSON *example, const char *kind, const char *none, cleat_string *page) {
    const cJSON *words = cleat_json_member(example, "words"), *truth = cleat_json_member(example, "truth"),
                *prediction = cleat_json_member(example, "prediction"),
                *confidence = cleat_json_member(example, "confidence");
    int count = cJSON_GetArraySize(words);
    cleat_string_add(page, "<figure class=\"example tags\" data-drawn=\"%s\"><p>", kind);
    for (int i = 0; i < count; ++i) {
        const char *guess = item_text(prediction, i);
        const char *tag = cJSON_IsString(cJSON_GetArrayItem(truth, i)) ? item_text(truth, i) : guess; /* unknown */
        const cJSON *sure = cJSON_GetArrayItem(confidence, i);
        bool right = strcmp(tag, guess) == 0, plain = right && strcmp(tag, none) == 0;
        cleat_html_add(page, "<span class=\"word %s\">%s", plain ? "" : right ? "right" : "wrong", item_text(words, i));
        if (!plain) {
            char shown[CLEAT_SHOWN];
            cleat_html_add(page, right ? "<small>%s" : "<small><s>%s", guess);
            if (cJSON_IsNumber(sure)) cleat_string_add(page, " %s", cleat_show_share(sure->valuedouble, shown));
            cleat_string_add(page, "%s", right ? "" : "</s> ");
            if (!right) cleat_html_text(page, tag);
            cleat_string_add(page, "</small>");
        }
        cleat_string_add(page, "</span> ");
    }
    cleat_string_add(page, "</p>");
    add_name(example, page);
    cleat_string_add(page, "</figure>");
}

static void add_tags(const cJSON *example, cleat_string *page) {
    add_words(example, "tags", "O", page);
}

/* Only masked tokens have a truth. */
static void add_tokens(const cJSON *example, cleat_string *page) {
    add_words(example, "tokens", "", page);
}

/* Tokens that the network held likely and unlikely are marked. */
static void add_likelihood(const cJSON *example, cleat_string *page) {
    const cJSON *words = cleat_json_member(example, "words"), *confidence = cleat_json_member(example, "confidence");
    const int count = cJSON_GetArraySize(words);
    cleat_string_add(page, "<figure class=\"example tags\" data-drawn=\"likelihood\"><p>");
    for (int i = 0; i < count; ++i) {
        const cJSON *sure = cJSON_GetArrayItem(confidence, i);
        const double share = cJSON_IsNumber(sure) ? sure->valuedouble : NAN;
        char shown[CLEAT_SHOWN];
        cleat_html_add(page, "<span class=\"word %s\">%s",
                       share >= 0.5   ? "right"
                       : share < 0.01 ? "wrong"
                                      : "",
                       item_text(words, i));
        if (cJSON_IsNumber(sure)) cleat_string_add(page, "<small>%s</small>", cleat_show_share(share, shown));
        cleat_string_add(page, "</span> ");
    }
    cleat_string_add(page, "</p>");
    add_name(example, page);
    cleat_string_add(page, "</figure>");
}

static void add_rna(const cJSON *example, cleat_string *page) {
    cleat_string_add(page, "<figure class=\"example rna\" data-drawn=\"rna\"><div class=\"pair\">");
    cleat_example_rna(example, page);
    cleat_string_add(page, "</div>");
    add_name(example, page);
    cleat_html_add(page, "<p class=\"sequence\">%s</p></figure>", cleat_json_text(example, "sequence"));
}

static void add_series(const cJSON *example, cleat_string *page) {
    cleat_html_add(page, "<figure class=\"example series\" data-drawn=\"series\"><figcaption class=\"name\">%s %s",
                   cleat_json_text(example, "column"), cleat_json_text(example, "name"));
    add_score(example, page);
    cleat_string_add(page, "</figcaption>");
    cleat_example_series(example, true, page);
    cleat_string_add(page, "</figure>");
}

/* The kinds; `legend` explains colours once for all examples of the kind. */
static const struct {
    const char *kind;
    void (*add)(const cJSON *example, cleat_string *page);
    const char *legend;
} kinds[] = {
    {"class", add_class, NULL},
    {"number", add_class, NULL},
    {"mask", add_mask, NULL},
    {"tags", add_tags,
     "<p class=\"note\">Below a word: its tag, if it has one. A wrong prediction is struck through; the correct tag "
     "follows (O: none).</p>"},
    {"tokens", add_tokens,
     "<p class=\"note\">The texts as the network receives them. Below a masked token: the predicted token and its "
     "probability. A wrong prediction is struck through; the token of the text follows.</p>"},
    {"likelihood", add_likelihood,
     "<p class=\"note\">Below each learned token: the probability that the network gave it after the tokens before it. "
     "Marked are those of at least 50 % and of less than 1 %.</p>"},
    {"rna", add_rna,
     "<p class=\"note\"><i class=\"key b0\"></i>truth <i class=\"key b1\"></i>prediction. Left: the chain of C1' "
     "atoms; drag to turn it. Right: pairs nearer "
     "than 12 Å, truth above the diagonal, prediction below.</p>"},
    {"series", add_series,
     "<p class=\"note\"><i class=\"key b7\"></i>past <i class=\"key b0\"></i>truth <i class=\"key b1\"></i>prediction "
     "<i class=\"key b2\"></i>baseline. Shaded, if known: ± 1.28 root mean square errors of the step in the "
     "validation, which hold 80 % of normal errors.</p>"},
};

/* The worst come first. Runs of earlier versions do not tell them from the others. */
static void add_kind(size_t kind, const cJSON *examples, cleat_string *page) {
    static const char *const titles[] = {"", "<h3>Worst</h3>", "<h3>Others, at even distances</h3>"};
    const cJSON *example;
    bool any = false;
    for (int group = 0; group < 3; ++group) {
        bool here = false;
        cJSON_ArrayForEach(example, examples) {
            const char *name = cleat_json_text(example, "kind"), *choice = cleat_json_text(example, "choice");
            const int its = !choice ? 0 : strcmp(choice, "worst") == 0 ? 1 : 2;
            if (!name || strcmp(name, kinds[kind].kind) != 0 || its != group) continue;
            if (!any && kinds[kind].legend) cleat_string_add(page, "%s", kinds[kind].legend);
            if (!here) cleat_string_add(page, "%s<div class=\"sheet %s\">", titles[group], kinds[kind].kind);
            any = here = true;
            kinds[kind].add(example, page);
        }
        if (here) cleat_string_add(page, "</div>");
    }
}

void cleat_section_examples(const cleat_report_run *runs, size_t count, cleat_string *page) {
    char step[CLEAT_SHOWN];
    for (size_t r = 0; r < count; ++r) {
        const cJSON *examples = cleat_json_member(runs[r].examples, "examples");
        const char *split = cleat_json_text(runs[r].examples, "split"),
                   *text = cleat_json_text(runs[r].examples, "text");
        if (!runs[r].examples) continue;
        cleat_string_add(page, "<section id=\"examples%zu\"><h2>Examples", r);
        if (count > 1) cleat_html_add(page, ": %s", runs[r].history->name);
        if (text)
            cleat_html_add(page, "</h2><p class=\"note\">%s</p>", text);
        else
            cleat_html_add(page, "</h2><p class=\"note\">From the %s data, at the best evaluation (step %s).</p>",
                           split ? split : "evaluation",
                           cleat_show_number(cleat_json_number(runs[r].examples, "step"), step));
        for (size_t kind = 0; kind < sizeof kinds / sizeof *kinds; ++kind) add_kind(kind, examples, page);
        cleat_score_table(runs[r].examples, page);
        cleat_confusion_table(cleat_json_member(runs[r].examples, "confusion"), page);
        cleat_string_add(page, "</section>\n");
    }
}
