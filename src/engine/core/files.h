/* Files and folders: whole reads, atomic writes, copies, hashes, listings, paths. */
#ifndef CLEAT_SRC_FILES_H
#define CLEAT_SRC_FILES_H

#include "core/name_list.h"
#include "core/string.h"

/* Reads the whole file and appends a zero byte that *size does not count. The caller frees *data
 * (cleat_free). */
cleat_status cleat_file_read(const char *path, char **data, size_t *size, cleat_error *error);
/* The same of a text in UTF-8, without its byte order mark. CLEAT_ERR_FORMAT: it is UTF-16. */
cleat_status cleat_file_read_text(const char *path, char **text, size_t *size, cleat_error *error);
/* CLEAT_ERR_FORMAT: these first bytes of the file are those of a text in UTF-16. */
cleat_status cleat_refuse_utf16(const char *path, const char *text, size_t size, cleat_error *error);
enum { CLEAT_FILE_PATH = 4096 };
/* A file that is written in parts, atomically: to a temporary name beside `path`, which is synced and renamed
 * when it is complete. */
typedef struct cleat_file_writer {
    const char *path; /* borrowed */
    char temporary[CLEAT_FILE_PATH];
    int file;
    size_t size; /* bytes written so far */
    void *hash;  /* NULL: not hashed */
} cleat_file_writer;
/* Creates the temporary file. On success the caller closes the writer. */
cleat_status cleat_file_writer_open(cleat_file_writer *writer, const char *path, bool hashed, cleat_error *error);
cleat_status cleat_file_writer_add(cleat_file_writer *writer, const void *data, size_t size, cleat_error *error);
/* Ends the file: with status CLEAT_OK it appears under its path, otherwise it is removed, and `status` is returned.
 * `hash` (may be NULL) receives the hash of a hashed file, as cleat_hash_text writes it. */
cleat_status cleat_file_writer_close(cleat_file_writer *writer, cleat_status status, char hash[33], cleat_error *error);
/* Writes a whole file in this way. */
cleat_status cleat_file_write(const char *path, const void *data, size_t size, cleat_error *error);
/* Writes a text in the same way and frees it in any case. Reports it if memory ran out while the text was
 * built. */
cleat_status cleat_file_write_text(const char *path, cleat_string *text, cleat_error *error);
/* The same as FOLDER/NAME. */
cleat_status cleat_file_write_in(const char *folder, const char *name, cleat_string *text, cleat_error *error);
/* Copies FROM/NAME to TO/NAME, which is written atomically. The file is never in memory as a whole; it may be
 * a symbolic link only with `links`. */
cleat_status cleat_file_copy(const char *from, const char *to, const char *name, bool links, cleat_error *error);
/* The size in bytes and the hash (cleat_hash_text) of a file, which is never in memory as a whole. */
cleat_status cleat_file_hash(const char *path, size_t *size, char text[33], cleat_error *error);
/* Entries of a folder that the program writes and tidies by itself, such as a run folder, are opened and removed
 * without following links, so nothing outside of it is copied, truncated or written. Only the last part of a
 * path is meant: the folders before it are the user's choice. */
/* open(2) of a regular file; `mode` is that of a created one. CLEAT_ERR_ARGUMENT: a symbolic link; or, where `flags`
 * allow writing, a file with another name elsewhere (hard link). CLEAT_ERR_NOT_FOUND: it does not exist. The caller
 * closes *file. */
cleat_status cleat_file_open_inside(const char *path, int flags, unsigned mode, int *file, cleat_error *error);
/* CLEAT_ERR_ARGUMENT: `path` is a symbolic link. */
cleat_status cleat_refuse_link(const char *path, cleat_error *error);
/* Removes FOLDER/NAME: a file, a link (not what it points to), or a folder of files and links. CLEAT_ERR_NOT_FOUND:
 * it does not exist. */
cleat_status cleat_remove_inside(const char *folder, const char *name, cleat_error *error);
/* Creates one folder, where nothing is yet, no link either. */
cleat_status cleat_folder_create(const char *path, cleat_error *error);
/* Whether `name` ends as the temporary files of cleat_file_writer do, which only a kill leaves behind. */
bool cleat_is_temporary(const char *name);
/* Creates a folder and its parents; it is not an error if the folder exists. */
cleat_status cleat_folder_make(const char *path, cleat_error *error);
/* Syncs the entries of a folder to the disk. */
cleat_status cleat_folder_sync(const char *path, cleat_error *error);
bool cleat_file_exists(const char *path);
bool cleat_folder_exists(const char *path);
/* Reads the rest of the first line that begins with `word`, without blanks around it. False: it is empty, or there is
 * none. */
bool cleat_file_field(const char *path, const char *word, char *value, size_t size);
/* The folder itself, or the nearest existing parent, in which it would be created. */
void cleat_folder_existing(const char *path, char *found, size_t size);
/* The bytes that are free there; INT64_MAX: unknown. */
int64_t cleat_folder_space(const char *folder);
/* Lists the names in a folder, without hidden ones, that `accepts` accepts, or all if it is NULL, sorted by bytes.
 * CLEAT_ERR_NOT_FOUND: the folder does not exist. */
cleat_status cleat_listing_read(const char *folder, bool (*accepts)(const char *name), cleat_name_list *listing,
                                cleat_error *error);
/* Sets text [256] to the first folders in `folder` with the file `name`: "; give one of its runs: a, b"; else "". */
const char *cleat_listing_hint(const char *folder, const char *name, char text[256]);
/* For qsort: the order of strings in listings. */
int cleat_by_bytes(const void *a, const void *b);
/* The file name extension with its dot (".csv"); "" if there is no dot, or only a leading one. Points into
 * `name`. */
const char *cleat_name_ending(const char *name);
/* Whether it is one of some endings, in lower case and separated by a space (".csv .tsv"); that of `name` may have
 * capitals, as cameras and Windows write them. */
bool cleat_ends_in(const char *name, const char *endings);
/* The user's cache folder of a program: that of the variable, or NAME in $XDG_CACHE_HOME or ~/.cache. Returns the
 * length of the path, of which size - 1 bytes are written; 0: there is none. */
size_t cleat_user_cache(const char *variable, const char *name, char *path, size_t size);
/* The user's cache folder for cleat: $CLEAT_CACHE_DIR, $XDG_CACHE_HOME/cleat or ~/.cache/cleat. Created if
 * needed, with access for the user only. If others may write to an existing folder, its subfolder cleat/ is
 * used instead. */
cleat_status cleat_cache_folder(char *path, size_t size, cleat_error *error);
/* The path of the file HASH in it, between `before` and `ending`. */
cleat_status cleat_cache_path(const char *before, const char *hash, const char *ending, char *path, size_t size,
                              cleat_error *error);
/* Writes a 128-bit hash (XXH3) as 32 hexadecimal digits and a zero. */
void cleat_hash_text(const void *data, size_t size, char text[33]);

/* Writes FOLDER/NAME to path [size], without the slash if either is empty. CLEAT_ERR_ARGUMENT: it does not
 * fit. */
cleat_status cleat_path_join(const char *folder, const char *name, char *path, size_t size, cleat_error *error);
/* Writes the folder of a file to folder [size], "." if the path has none; returns the file's name, which is in `path`.
 * NULL: the folder does not fit. */
const char *cleat_path_split(const char *path, char *folder, size_t size);

#endif
