/* Framing of records, their checksums, and the name of the file. */
#include "tensorboard/event_file.h"

#include "core/files.h"
#include "platform/files.h"
#include "platform/system.h"

#include <errno.h>
#include <rhash.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const char prefix[] = "events.out.tfevents.";

bool cleat_event_file_name(const char *name) {
    return strncmp(name, prefix, sizeof prefix - 1) == 0;
}

/* Readers compare names, so a process that starts within the same second, or after the clock was set back, must
 * not sort before an earlier one. */
static cleat_status next_second(const char *folder, long long *second, cleat_error *error) {
    cleat_name_list listing = {0};
    cleat_status status = cleat_listing_read(folder, cleat_event_file_name, &listing, error);
    if (status) return status;
    *second = (long long)time(NULL);
    for (size_t i = 0; i < listing.count; ++i) {
        long long there = strtoll(listing.names[i] + sizeof prefix - 1, NULL, 10);
        if (there >= *second && there < 9999999999) *second = there + 1;
    }
    cleat_name_list_free(&listing);
    return CLEAT_OK;
}

static void host_name(char host[65]) {
    if (gethostname(host, 64) != 0 || !*host) strcpy(host, "host");
    host[64] = 0;
    for (char *at = host; *at; ++at)
        if (!strchr("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-.", *at)) *at = '-';
}

cleat_status cleat_event_file_create(const char *folder, cleat_event_file *file, cleat_error *error) {
    char host[65];
    long long second = 0;
    cleat_event_file made = {.file = -1};
    rhash_library_init();
    cleat_status status = next_second(folder, &second, error);
    if (status) return status;
    host_name(host);
    int used =
        snprintf(made.path, sizeof made.path, "%s/%s%010lld.%s.%ld", folder, prefix, second, host, (long)getpid());
    if (used >= (int)sizeof made.path) return cleat_fail(error, CLEAT_ERR_ARGUMENT, "path too long: %.200s...", folder);
    made.file = open(made.path, O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0644);
    if (made.file < 0)
        return cleat_fail(error, CLEAT_ERR_IO, "%s: cannot create the file: %s", made.path, strerror(errno));
    *file = made;
    return CLEAT_OK;
}

void cleat_event_file_close(cleat_event_file *file) {
    if (file->file >= 0) close(file->file);
    file->file = -1;
}

static void put_little_endian(uint8_t *to, uint64_t value, int bytes) {
    for (int i = 0; i < bytes; ++i) to[i] = (uint8_t)(value >> 8 * i);
}

/* CRC-32C, rotated and offset as TFRecord requires: the checksum of data that contain checksums is weak. */
static bool put_checksum(uint8_t *to, const uint8_t *data, size_t size) {
    unsigned char digest[4]; /* most significant byte first */
    if (rhash_msg(RHASH_CRC32C, data, size, digest) < 0) return false;
    uint32_t crc = (uint32_t)digest[0] << 24 | (uint32_t)digest[1] << 16 | (uint32_t)digest[2] << 8 | digest[3];
    put_little_endian(to, (uint32_t)((crc >> 15 | crc << 17) + 0xa282ead8u), 4);
    return true;
}

cleat_status cleat_event_file_append(cleat_event_file *file, uint8_t *frame, size_t size, cleat_error *error) {
    ssize_t put;
    put_little_endian(frame, size, 8);
    if (!put_checksum(frame + 8, frame, 8) ||
        !put_checksum(frame + CLEAT_FRAME_HEAD + size, frame + CLEAT_FRAME_HEAD, size))
        return cleat_fail(error, CLEAT_ERR_MEMORY, "%s: no memory for a checksum", file->path);
    do put = write(file->file, frame, CLEAT_FRAME + size);
    while (put < 0 && errno == EINTR);
    if (put == (ssize_t)(CLEAT_FRAME + size)) {
        file->size += put;
        return CLEAT_OK;
    }
    if (put >= 0) errno = ENOSPC;
    cleat_status status =
        cleat_fail(error, CLEAT_ERR_IO, "%s: cannot append a record: %s", file->path, strerror(errno));
    if (put > 0 && ftruncate(file->file, file->size) != 0) /* readers stop for good at a partial record */
        cleat_log(CLEAT_LOG_WARNING, "%s: the last record is truncated", file->path);
    return status;
}
