/* Compression in gzip's format, in memory. */
#include "core/memory.h"
#include "trace/trace.h"

#include <limits.h>
#include <string.h>
#include <zlib.h>

cleat_status cleat_gzip(const void *data, size_t size, char **packed, size_t *packed_size, cleat_error *error) {
    enum { GZIP = 15 + 16 }; /* window bits, and 16 for gzip's header and checksum */
    z_stream stream;
    memset(&stream, 0, sizeof stream);
    if (size > UINT_MAX / 2) return cleat_fail(error, CLEAT_ERR_ARGUMENT, "%zu bytes are too many to compress", size);
    if (deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, GZIP, 8, Z_DEFAULT_STRATEGY) != Z_OK)
        return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory to compress %zu bytes", size);
    size_t bound = deflateBound(&stream, (uLong)size);
    char *made = cleat_alloc(bound, 1);
    stream.next_in = (Bytef *)(uintptr_t)data;
    stream.avail_in = (uInt)size;
    stream.next_out = (Bytef *)made;
    stream.avail_out = (uInt)bound;
    int code = made ? deflate(&stream, Z_FINISH) : Z_MEM_ERROR;
    size_t written = stream.total_out;
    deflateEnd(&stream);
    if (code != Z_STREAM_END) {
        cleat_free(made);
        return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory to compress %zu bytes", size);
    }
    *packed = made;
    *packed_size = written;
    return CLEAT_OK;
}
