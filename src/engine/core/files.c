/* Files: whole reads, reads and writes in parts, atomic writes, folders and their listings, the cache folder,
 * hashes. */
#include "core/files.h"

#include "core/memory.h"
#include "platform/files.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

enum { PATH_BYTES = CLEAT_FILE_PATH, PART = 64 << 10 };

static cleat_status io_fail(cleat_error *error, const char *path, const char *what) {
    cleat_status status = errno == ENOENT ? CLEAT_ERR_NOT_FOUND : CLEAT_ERR_IO;
    return cleat_fail(error, status, "%s: cannot %s: %s", path, what, strerror(errno));
}

cleat_status cleat_refuse_link(const char *path, cleat_error *error) {
    struct stat about;
    if (lstat(path, &about) != 0 || !S_ISLNK(about.st_mode)) return CLEAT_OK;
    return cleat_fail(
        error, CLEAT_ERR_ARGUMENT,
        "%s: is a symbolic link, and of those within a run folder none is followed for writing or copying: "
        "put what it points to in its place",
        path);
}

/* O_NONBLOCK, because a pipe would block. */
static cleat_status open_regular(const char *path, int flags, unsigned mode, int *file, cleat_error *error) {
    struct stat about;
    cleat_status status = CLEAT_OK;
    const int opened = open(path, flags | O_CLOEXEC | O_NONBLOCK, mode);
    const int why = errno;
    if (opened < 0 && (flags & O_NOFOLLOW) && (status = cleat_refuse_link(path, error)) != CLEAT_OK) return status;
    errno = why;
    if (opened < 0) return io_fail(error, path, "open");
    if (fstat(opened, &about) != 0)
        status = io_fail(error, path, "stat");
    else if (!S_ISREG(about.st_mode))
        status = cleat_fail(error, CLEAT_ERR_IO, "%s: is not a regular file", path);
    else if ((flags & O_NOFOLLOW) && (flags & O_ACCMODE) != O_RDONLY && about.st_nlink > 1 && about.st_size > 0)
        status =
            cleat_fail(error, CLEAT_ERR_ARGUMENT,
                       "%s: has another name elsewhere (a hard link), whose content would change as well: replace it "
                       "with a copy",
                       path);
    if (!status)
        *file = opened;
    else
        close(opened);
    return status;
}

cleat_status cleat_file_read(const char *path, char **data, size_t *size, cleat_error *error) {
    struct stat about;
    char *bytes = NULL;
    size_t used = 0;
    int file;
    cleat_status status = open_regular(path, O_RDONLY, 0, &file, error);
    if (status) return status;
    if (fstat(file, &about) != 0) {
        status = io_fail(error, path, "stat");
        goto done;
    }
    bytes = cleat_alloc((size_t)about.st_size + 1, 1);
    if (!bytes) {
        status = cleat_fail(error, CLEAT_ERR_MEMORY, "%s: no memory for %lld bytes", path, (long long)about.st_size);
        goto done;
    }
    while (used < (size_t)about.st_size) {
        ssize_t got = read(file, bytes + used, (size_t)about.st_size - used);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) {
            status = io_fail(error, path, "read");
            goto done;
        }
        if (got == 0) break; /* the file shrank meanwhile: the bytes read are its content */
        used += (size_t)got;
    }
    bytes[used] = 0;
    *data = bytes;
    *size = used;
    bytes = NULL;
done:
    cleat_free(bytes);
    close(file);
    return status;
}

cleat_status cleat_refuse_utf16(const char *path, const char *text, size_t size, cleat_error *error) {
    if (size < 2 || (memcmp(text, "\xFF\xFE", 2) != 0 && memcmp(text, "\xFE\xFF", 2) != 0)) return CLEAT_OK;
    return cleat_fail(
        error, CLEAT_ERR_FORMAT,
        "%s:1: the file is UTF-16, as PowerShell's > and Excel's \"Unicode text\" write it; save it as "
        "UTF-8 in an editor, or (NEW with the same ending): iconv -f UTF-16 -t UTF-8 OLD > NEW; in PowerShell: "
        "Get-Content OLD | Set-Content -Encoding utf8 NEW",
        path);
}

cleat_status cleat_file_read_text(const char *path, char **text, size_t *size, cleat_error *error) {
    enum { MARK = 3 };
    char *data;
    size_t bytes;
    cleat_status status = cleat_file_read(path, &data, &bytes, error);
    if (status) return status;
    status = cleat_refuse_utf16(path, data, bytes, error);
    if (status) {
        cleat_free(data);
        return status;
    }
    if (bytes >= MARK && memcmp(data, "\xEF\xBB\xBF", MARK) == 0) memmove(data, data + MARK, (bytes -= MARK) + 1);
    *text = data;
    *size = bytes;
    return CLEAT_OK;
}

static void folder_of(const char *path, char *folder) {
    snprintf(folder, PATH_BYTES, "%s", path);
    char *slash = strrchr(folder, '/');
    if (!slash)
        snprintf(folder, PATH_BYTES, ".");
    else if (slash == folder)
        folder[1] = 0;
    else
        *slash = 0;
}

static cleat_status full_disk(cleat_error *error, const char *path, size_t wanted) {
    char folder[PATH_BYTES];
    struct statvfs about;
    folder_of(path, folder);
    const bool known = statvfs(folder, &about) == 0;
    const unsigned long long left = known ? (unsigned long long)about.f_bavail * about.f_frsize : 0;
    return cleat_fail(error, CLEAT_ERR_IO,
                      "%s: the disk is full: %zu more bytes are wanted, %llu are free; free space, or use a folder on "
                      "another disk",
                      path, wanted, left);
}

static cleat_status write_all(int file, const char *path, const void *data, size_t size, cleat_error *error) {
    for (size_t done = 0; done < size;) {
        ssize_t put = write(file, (const char *)data + done, size - done);
        if (put < 0 && errno == EINTR) continue;
        if (put < 0 && errno == ENOSPC) return full_disk(error, path, size - done);
        if (put < 0) return io_fail(error, path, "write");
        done += (size_t)put;
    }
    return CLEAT_OK;
}

cleat_status cleat_folder_sync(const char *path, cleat_error *error) {
    int folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder < 0) return io_fail(error, path, "open");
    cleat_status status = fsync(folder) == 0 || errno == EINVAL ? CLEAT_OK : io_fail(error, path, "sync");
    close(folder);
    return status;
}

/* --- atomic writes -------------------------------------------------------------------------------------------- */

static cleat_status create_temporary(cleat_file_writer *writer, cleat_error *error) {
    unsigned long long number = 0; /* random, because process ids repeat where containers share a folder */
    if (getrandom(&number, sizeof number, 0) != sizeof number)
        return io_fail(error, writer->path, "get a random name for");
    if ((size_t)snprintf(writer->temporary, sizeof writer->temporary, "%s.tmp-%016llx", writer->path, number) >=
        sizeof writer->temporary)
        return cleat_fail(error, CLEAT_ERR_ARGUMENT, "path too long: %.100s...", writer->path);
    writer->file = open(writer->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    return writer->file < 0 ? io_fail(error, writer->temporary, "create") : CLEAT_OK;
}

cleat_status cleat_file_writer_open(cleat_file_writer *writer, const char *path, bool hashed, cleat_error *error) {
    writer->path = path;
    writer->size = 0;
    writer->hash = hashed ? XXH3_createState() : NULL;
    if (hashed && !writer->hash) return cleat_fail(error, CLEAT_ERR_MEMORY, "%s: no memory to write it", path);
    if (hashed) XXH3_128bits_reset(writer->hash);
    cleat_status status = create_temporary(writer, error);
    if (status) XXH3_freeState(writer->hash);
    return status;
}

cleat_status cleat_file_writer_add(cleat_file_writer *writer, const void *data, size_t size, cleat_error *error) {
    if (writer->hash) XXH3_128bits_update(writer->hash, data, size);
    writer->size += size;
    return write_all(writer->file, writer->temporary, data, size, error);
}

/* By hand: a key of texts is made of two hashes a text, and snprintf showed in profiles of a start. */
static void hash_as_text(XXH128_hash_t hash, char text[33]) {
    for (int i = 0; i < 16; ++i) {
        text[i] = "0123456789abcdef"[hash.high64 >> (60 - 4 * i) & 15];
        text[16 + i] = "0123456789abcdef"[hash.low64 >> (60 - 4 * i) & 15];
    }
    text[32] = 0;
}

cleat_status cleat_file_writer_close(cleat_file_writer *writer, cleat_status status, char hash[33],
                                     cleat_error *error) {
    char folder[PATH_BYTES];
    if (!status && fsync(writer->file) != 0) status = io_fail(error, writer->temporary, "sync");
    if (close(writer->file) != 0 && !status) status = io_fail(error, writer->temporary, "close");
    if (!status && rename(writer->temporary, writer->path) != 0) status = io_fail(error, writer->path, "rename to");
    if (!status && hash) hash_as_text(XXH3_128bits_digest(writer->hash), hash);
    XXH3_freeState(writer->hash);
    if (status) {
        unlink(writer->temporary);
        return status;
    }
    folder_of(writer->path, folder);
    return cleat_folder_sync(folder, error);
}

cleat_status cleat_file_write(const char *path, const void *data, size_t size, cleat_error *error) {
    cleat_file_writer writer;
    cleat_status status = cleat_file_writer_open(&writer, path, false, error);
    if (status) return status;
    status = cleat_file_writer_add(&writer, data, size, error);
    return cleat_file_writer_close(&writer, status, NULL, error);
}

cleat_status cleat_file_write_text(const char *path, cleat_string *text, cleat_error *error) {
    char *data = NULL;
    size_t size = text->size;
    cleat_status status = cleat_string_detach(text, &data, error);
    if (!status) status = cleat_file_write(path, data, size, error);
    cleat_free(data);
    return status;
}

cleat_status cleat_file_write_in(const char *folder, const char *name, cleat_string *text, cleat_error *error) {
    char path[4096];
    cleat_status status = cleat_path_join(folder, name, path, sizeof path, error);
    if (!status) return cleat_file_write_text(path, text, error);
    cleat_string_free(text);
    return status;
}

/* Passes the bytes of an open file to `use`, part by part, and closes it. */
static cleat_status read_parts(int file, const char *path,
                               cleat_status (*use)(void *, const void *, size_t, cleat_error *), void *user,
                               cleat_error *error) {
    char part[PART];
    cleat_status status = CLEAT_OK;
    while (!status) {
        const ssize_t got = read(file, part, sizeof part);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) status = io_fail(error, path, "read");
        if (got <= 0) break;
        status = use(user, part, (size_t)got, error);
    }
    close(file);
    return status;
}

static cleat_status add_part(void *writer, const void *data, size_t size, cleat_error *error) {
    return cleat_file_writer_add(writer, data, size, error);
}

cleat_status cleat_file_copy(const char *from, const char *to, const char *name, bool links, cleat_error *error) {
    char source[PATH_BYTES], target[PATH_BYTES];
    cleat_file_writer writer;
    int file;
    cleat_status status = cleat_path_join(from, name, source, sizeof source, error);
    if (!status) status = cleat_path_join(to, name, target, sizeof target, error);
    if (!status) status = open_regular(source, links ? O_RDONLY : O_RDONLY | O_NOFOLLOW, 0, &file, error);
    if (status) return status;
    status = cleat_file_writer_open(&writer, target, false, error);
    if (status) {
        close(file);
        return status;
    }
    status = read_parts(file, source, add_part, &writer, error);
    return cleat_file_writer_close(&writer, status, NULL, error);
}

typedef struct hashed_part {
    XXH3_state_t state;
    size_t size;
} hashed_part;

static cleat_status hash_part(void *user, const void *data, size_t size, cleat_error *error) {
    hashed_part *all = user;
    (void)error;
    XXH3_128bits_update(&all->state, data, size);
    all->size += size;
    return CLEAT_OK;
}

cleat_status cleat_file_hash(const char *path, size_t *size, char text[33], cleat_error *error) {
    hashed_part all = {.size = 0};
    XXH3_128bits_reset(&all.state);
    int file;
    cleat_status status = open_regular(path, O_RDONLY, 0, &file, error);
    if (!status) status = read_parts(file, path, hash_part, &all, error);
    if (status) return status;
    *size = all.size;
    hash_as_text(XXH3_128bits_digest(&all.state), text);
    return CLEAT_OK;
}

cleat_status cleat_folder_make(const char *path, cleat_error *error) {
    char part[PATH_BYTES];
    if ((size_t)snprintf(part, sizeof part, "%s", path) >= sizeof part || !*path)
        return cleat_fail(error, CLEAT_ERR_ARGUMENT, "folder name is empty or too long: '%.100s'", path);
    for (char *end = part + 1;; ++end) {
        if (*end && *end != '/') continue;
        char kept = *end;
        *end = 0;
        const bool made = mkdir(part, 0755) == 0 || (errno == EEXIST && cleat_folder_exists(part));
        if (!made && (errno == EEXIST || errno == ENOTDIR))
            return cleat_fail(error, CLEAT_ERR_IO, "%s: a file has this name; give a folder, or move the file", part);
        if (!made) return io_fail(error, part, "create the folder");
        if (!kept) return CLEAT_OK;
        *end = kept;
    }
}

cleat_status cleat_file_open_inside(const char *path, int flags, unsigned mode, int *file, cleat_error *error) {
    return open_regular(path, flags | O_NOFOLLOW, mode, file, error);
}

cleat_status cleat_folder_create(const char *path, cleat_error *error) {
    if (mkdir(path, 0755) == 0) return CLEAT_OK;
    if (errno == EEXIST) return cleat_fail(error, CLEAT_ERR_IO, "%s: is in the way: remove it", path);
    return io_fail(error, path, "create the folder");
}

bool cleat_is_temporary(const char *name) {
    const char *ending = cleat_name_ending(name);
    return strncmp(ending, ".tmp-", 5) == 0 && strspn(ending + 5, "0123456789abcdef") == 16 && !ending[5 + 16];
}

/* Empties and removes a folder of files and links, as entry `name` of the open folder `parent`. Returns errno. */
static int remove_folder_at(int parent, const char *name) {
    const struct dirent *entry;
    int failed = 0;
    const int opened = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *folder = opened < 0 ? NULL : fdopendir(opened);
    if (!folder) {
        failed = errno;
        if (opened >= 0) close(opened);
        return failed;
    }
    while ((entry = readdir(folder)))
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0 &&
            unlinkat(opened, entry->d_name, 0) != 0)
            failed = errno;
    closedir(folder);
    return unlinkat(parent, name, AT_REMOVEDIR) == 0 ? 0 : failed ? failed : errno;
}

cleat_status cleat_remove_inside(const char *folder, const char *name, cleat_error *error) {
    const int parent = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (parent < 0) return io_fail(error, folder, "open");
    int failed = unlinkat(parent, name, 0) == 0 ? 0 : errno;
    if (failed == EISDIR || failed == EPERM) failed = remove_folder_at(parent, name); /* EPERM: as POSIX has it */
    close(parent);
    if (!failed) return CLEAT_OK;
    return cleat_fail(error, failed == ENOENT ? CLEAT_ERR_NOT_FOUND : CLEAT_ERR_IO, "%s/%s: cannot remove: %s", folder,
                      name, strerror(failed));
}

bool cleat_file_exists(const char *path) {
    struct stat about;
    return stat(path, &about) == 0 && S_ISREG(about.st_mode);
}

bool cleat_folder_exists(const char *path) {
    struct stat about;
    return stat(path, &about) == 0 && S_ISDIR(about.st_mode);
}

bool cleat_file_field(const char *path, const char *word, char *value, size_t size) {
    char line[1024];
    bool found = false;
    FILE *file = fopen(path, "r");
    if (!file) return false;
    while (!found && fgets(line, sizeof line, file)) found = strncmp(line, word, strlen(word)) == 0;
    fclose(file);
    if (!found) return false;
    const char *at = line + strlen(word) + strspn(line + strlen(word), " \t");
    size_t length = strlen(at);
    while (length > 0 && strchr(" \t\r\n", at[length - 1])) --length;
    snprintf(value, size, "%.*s", (int)length, at);
    return value[0] != 0;
}

void cleat_folder_existing(const char *path, char *found, size_t size) {
    snprintf(found, size, "%s", path);
    while (found[0] && access(found, F_OK) != 0) {
        char *slash = strrchr(found, '/');
        if (!slash) break;
        *slash = 0;
    }
    if (access(found, F_OK) != 0) snprintf(found, size, "%s", path[0] == '/' ? "/" : ".");
}

int64_t cleat_folder_space(const char *folder) {
    char path[PATH_BYTES];
    struct statvfs about;
    cleat_folder_existing(folder, path, sizeof path);
    return statvfs(path, &about) == 0 ? (int64_t)(about.f_bavail * about.f_frsize) : INT64_MAX;
}

int cleat_by_bytes(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

cleat_status cleat_listing_read(const char *folder, bool (*accepts)(const char *name), cleat_name_list *listing,
                                cleat_error *error) {
    cleat_name_list found = {0};
    cleat_status status = CLEAT_OK;
    DIR *stream = opendir(folder);
    if (!stream) return io_fail(error, folder, "list the folder");
    while (!status) {
        errno = 0; /* readdir returns NULL both at the end and on an error */
        const struct dirent *entry = readdir(stream);
        if (!entry && errno) status = io_fail(error, folder, "list the folder");
        if (!entry) break;
        if (entry->d_name[0] != '.' && (!accepts || accepts(entry->d_name)))
            status = cleat_name_list_add(&found, entry->d_name, error);
    }
    closedir(stream);
    if (status) {
        cleat_name_list_free(&found);
        return status;
    }
    if (found.count) qsort(found.names, found.count, sizeof *found.names, cleat_by_bytes);
    *listing = found;
    return CLEAT_OK;
}

const char *cleat_listing_hint(const char *folder, const char *name, char text[256]) {
    char path[CLEAT_FILE_PATH];
    cleat_name_list in = {0};
    size_t used = 0;
    *text = 0;
    if (cleat_listing_read(folder, NULL, &in, NULL) != CLEAT_OK) return text;
    for (size_t i = 0; i < in.count && used < 160; ++i)
        if ((size_t)snprintf(path, sizeof path, "%s/%s/%s", folder, in.names[i], name) < sizeof path &&
            cleat_file_exists(path))
            used += (size_t)snprintf(text + used, 72, "%s%.40s", used ? ", " : "; give one of its runs: ", in.names[i]);
    cleat_name_list_free(&in);
    return text;
}

const char *cleat_name_ending(const char *name) {
    const char *dot = strrchr(name, '.');
    return dot && dot != name ? dot : "";
}

bool cleat_ends_in(const char *name, const char *endings) {
    char lower[16] = "";
    const char *ending = cleat_name_ending(name);
    for (size_t i = 0; ending[i] && i + 1 < sizeof lower; ++i) lower[i] = (char)tolower((unsigned char)ending[i]);
    return *lower && cleat_has_word(endings, lower, ' ');
}

/* Creates a folder for its owner alone, or leaves an existing one unchanged. Files that are executed
 * (kernels) are safe only in a folder to which no other user can write. CLEAT_ERR_ARGUMENT: others may write
 * there. */
static cleat_status make_private(const char *path, cleat_error *error) {
    char parent[PATH_BYTES];
    struct stat about;
    folder_of(path, parent);
    cleat_status status = cleat_folder_make(parent, error);
    if (status) return status;
    if (mkdir(path, 0700) != 0 && errno != EEXIST) return io_fail(error, path, "create the folder");
    if (stat(path, &about) != 0) return io_fail(error, path, "stat");
    if (!S_ISDIR(about.st_mode)) return cleat_fail(error, CLEAT_ERR_IO, "%s: is not a folder", path);
    if ((about.st_mode & 022) != 0) return cleat_fail(error, CLEAT_ERR_ARGUMENT, "%s: writable by other users", path);
    if (about.st_uid != geteuid())
        return cleat_fail(error, CLEAT_ERR_IO, "%s: belongs to another user; set CLEAT_CACHE_DIR", path);
    return CLEAT_OK;
}

size_t cleat_user_cache(const char *variable, const char *name, char *path, size_t size) {
    const char *own = getenv(variable), *xdg = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    size_t used = 0;
    if (own && *own)
        used = (size_t)snprintf(path, size, "%s", own);
    else if (xdg && *xdg)
        used = (size_t)snprintf(path, size, "%s/%s", xdg, name);
    else if (home && *home)
        used = (size_t)snprintf(path, size, "%s/.cache/%s", home, name);
    if (used == 0 || used >= size) return used;
    cleat_path_from_user(path);
    return strlen(path);
}

cleat_status cleat_cache_folder(char *path, size_t size, cleat_error *error) {
    const size_t used = cleat_user_cache("CLEAT_CACHE_DIR", "cleat", path, size);
    if (used == 0) return cleat_fail(error, CLEAT_ERR_NOT_FOUND, "no cache folder: set CLEAT_CACHE_DIR or HOME");
    if (used >= size) return cleat_fail(error, CLEAT_ERR_ARGUMENT, "cache folder name too long");
    cleat_status status = make_private(path, error);
    if (status != CLEAT_ERR_ARGUMENT) return status;
    if (used + sizeof "/cleat" > size) return cleat_fail(error, CLEAT_ERR_ARGUMENT, "cache folder name too long");
    memcpy(path + used, "/cleat", sizeof "/cleat");
    return make_private(path, error) == CLEAT_OK
               ? CLEAT_OK
               : cleat_fail(error, CLEAT_ERR_IO, "%s: writable by other users; set CLEAT_CACHE_DIR", path);
}

cleat_status cleat_cache_path(const char *before, const char *hash, const char *ending, char *path, size_t size,
                              cleat_error *error) {
    char folder[PATH_BYTES];
    cleat_status status = cleat_cache_folder(folder, sizeof folder, error);
    if (status) return status;
    if ((size_t)snprintf(path, size, "%s/%s%s%s", folder, before, hash, ending) < size) return CLEAT_OK;
    return cleat_fail(error, CLEAT_ERR_IO, "the cache folder path is too long: %s", folder);
}

void cleat_hash_text(const void *data, size_t size, char text[33]) {
    hash_as_text(XXH3_128bits(data, size), text);
}

cleat_status cleat_path_join(const char *folder, const char *name, char *path, size_t size, cleat_error *error) {
    const char *slash = *folder && *name ? "/" : "";
    if ((size_t)snprintf(path, size, "%s%s%s", folder, slash, name) < size) return CLEAT_OK;
    return cleat_fail(error, CLEAT_ERR_ARGUMENT, "path too long: %.200s...", folder);
}

const char *cleat_path_split(const char *path, char *folder, size_t size) {
    const char *slash = strrchr(path, '/');
    const int length = slash && slash > path ? (int)(slash - path) : 1;
    if (snprintf(folder, size, "%.*s", length, slash ? path : ".") >= (int)size) return NULL;
    return slash ? slash + 1 : path;
}
