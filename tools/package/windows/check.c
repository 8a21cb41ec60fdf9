/* Calls a function of each library for Windows; exit status 1 and the name of one that does not work. */
#define CL_TARGET_OPENCL_VERSION 120
#define PCRE2_CODE_UNIT_WIDTH 8
#define XXH_INLINE_ALL
#include <stdio.h>
#include <string.h>

#include <cjson/cJSON.h>
#include <clblast_c.h>
#include <hwloc.h>
#include <ini.h>
#include <jpeglib.h>
#include <pcre2.h>
#include <png.h>
#include <protobuf-c/protobuf-c.h>
#include <rhash.h>
#include <tiffio.h>
#include <utf8proc.h>
#include <xxhash.h>
#include <zlib.h>

static int faults;

static void check(const char *name, int works) {
    if (works) return;
    printf("%s does not work\n", name);
    faults = 1;
}

static int on_value(void *user, const char *section, const char *name, const char *value) {
    (void)section, (void)name;
    *(char *)user = *value;
    return 1;
}

int main(void) {
    cl_platform_id platform;
    cl_device_id device = NULL;
    clGetPlatformIDs(1, &platform, NULL);
    check("OpenCL", clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL) == CL_SUCCESS);
    check("CLBlast", CLBlastOverrideParameters(device, "Xgemm", CLBlastPrecisionSingle, 0, NULL, NULL) ==
                         CLBlastMissingOverrideParameter);
    hwloc_topology_t topology;
    hwloc_topology_init(&topology);
    hwloc_topology_load(topology);
    check("hwloc", hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_PU) > 0);
    char value = 0;
    ini_parse_string("[a]\nb=c\n", on_value, &value);
    check("inih", value == 'c');
    check("cJSON", cJSON_Parse("[1.5]")->child->valuedouble == 1.5);
    utf8proc_uint8_t *folded = utf8proc_NFKC_Casefold((const utf8proc_uint8_t *)"\303\204");
    check("utf8proc", !strcmp((char *)folded, "\303\244"));
    int code;
    PCRE2_SIZE at;
    pcre2_code *pattern = pcre2_compile((PCRE2_SPTR) "\\p{Lu}+", PCRE2_ZERO_TERMINATED, PCRE2_UTF, &code, &at, NULL);
    pcre2_match_data *match = pcre2_match_data_create(1, NULL);
    check("PCRE2", !pcre2_jit_compile(pattern, PCRE2_JIT_COMPLETE) &&
                       pcre2_match(pattern, (PCRE2_SPTR) "a\303\204", 3, 0, 0, match, NULL) == 1);
    unsigned char crc[4], packed[64], text[64] = "text", out[64];
    rhash_library_init();
    rhash_msg(RHASH_CRC32C, "123456789", 9, crc); /* 0xE3069283 (RFC 3720) */
    check("RHash", !memcmp(crc, "\xe3\x06\x92\x83", 4));
    uLongf size = sizeof packed, back = sizeof out;
    check("zlib", !compress(packed, &size, text, sizeof text) && !uncompress(out, &back, packed, size) &&
                      !memcmp(out, text, sizeof text));
    check("xxHash", XXH3_64bits("", 0) == 0x2d06800538d394c2);
    check("protobuf-c", protobuf_c_version_number() >= 1004000);
    png_image image = {.version = PNG_IMAGE_VERSION, .width = 4, .height = 4, .format = PNG_FORMAT_RGBA};
    png_alloc_size_t bytes = 0;
    check("libpng", png_image_write_to_memory(&image, NULL, &bytes, 0, text, 0, NULL) && bytes > 60);
    struct jpeg_error_mgr errors;
    struct jpeg_decompress_struct jpeg = {.err = jpeg_std_error(&errors)};
    jpeg_create_decompress(&jpeg);
    check("libjpeg-turbo", jpeg.global_state == 200); /* ready to read */
    check("libtiff", TIFFIsCODECConfigured(COMPRESSION_ADOBE_DEFLATE) && TIFFIsCODECConfigured(COMPRESSION_JPEG));
    return faults;
}
