/* Helpers that write vocabulary files for the text tests. */
#include "vocab.h"

#include "platform/files.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

const char *vocab_path(void) {
    static char path[64];
    snprintf(path, sizeof path, "/tmp/cleat-vocab-%ld.txt", (long)getpid());
    return path;
}

const char *vocab_write(const char *data, size_t size) {
    FILE *file = fopen(vocab_path(), "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(data, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
    return vocab_path();
}

cleat_tokenizer *vocab_tokenizer(const char *pieces, bool lowercase) {
    char text[8192];
    cleat_tokenizer *tokenizer = NULL;
    cleat_error error = {0};
    int length = snprintf(text, sizeof text, "[PAD] [UNK] [CLS] [SEP] [MASK] %s", pieces);
    assert_true(length > 0 && (size_t)length < sizeof text);
    for (char *p = text; *p; ++p)
        if (*p == ' ') *p = '\n';
    if (cleat_tokenizer_load(vocab_write(text, (size_t)length), lowercase, &tokenizer, &error) != CLEAT_OK)
        fail_msg("%s", error.text);
    return tokenizer;
}

const char *vocab_encode(const cleat_tokenizer *tokenizer, const char *text, size_t size) {
    static char shown[8192];
    cleat_token tokens[512];
    size_t count = 0, used = 0;
    assert_int_equal(cleat_tokenizer_encode(tokenizer, text, size, tokens, 512, &count, NULL), CLEAT_OK);
    assert_true(count <= 512);
    shown[0] = 0;
    for (size_t i = 0; i < count; ++i) {
        const char *piece = cleat_tokenizer_piece(tokenizer, tokens[i].id);
        assert_non_null(piece);
        assert_true(tokens[i].begin < tokens[i].end && tokens[i].end <= size);
        assert_true(i == 0 ? tokens[i].word == 0 : tokens[i].word - tokens[i - 1].word <= 1);
        used += (size_t)snprintf(shown + used, sizeof shown - used, "%s%s", i ? " " : "", piece);
        assert_true(used < sizeof shown);
    }
    return shown;
}

int vocab_remove(void **state) {
    (void)state;
    unlink(vocab_path());
    return 0;
}
