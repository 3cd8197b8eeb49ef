/* Stands in for libamdhip64.so where there is no AMD GPU: takes code objects and launches, and writes down what it got.
   HIP_STAND_IN_LOG names the file. A line is "load PATH", "function NAME" or
   "launch NAME GRID*3 BLOCK*3 LDS STREAM SIZE BYTES". */
#define _GNU_SOURCE
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { success = 0, invalid_value = 1, invalid_image = 200, not_found = 500 };

struct module {
    size_t size;
    unsigned char bytes[];
};

static FILE *log_file(void) {
    FILE *file = fopen(getenv("HIP_STAND_IN_LOG"), "a");
    if (!file) abort();
    return file;
}

const char *hipGetErrorString(int status) {
    return status == invalid_value ? "invalid argument" : status == not_found ? "named symbol not found" : "no good";
}

int hipModuleLoad(struct module **module, const char *path) {
    FILE *file = fopen(path, "rb");
    if (!file) return invalid_value;
    fseek(file, 0, SEEK_END);
    size_t size = (size_t)ftell(file);
    rewind(file);
    *module = malloc(sizeof **module + size);
    (*module)->size = fread((*module)->bytes, 1, size, file);
    fclose(file);
    /* an ELF file whose machine is the AMD GPU */
    if (size < 20 || memcmp((*module)->bytes, "\177ELF", 4) || (*module)->bytes[18] != 224) return invalid_image;
    FILE *out = log_file();
    fprintf(out, "load %s\n", path);
    fclose(out);
    return success;
}

int hipModuleGetFunction(char **function, struct module *module, const char *name) {
    char descriptor[256];
    snprintf(descriptor, sizeof descriptor, "%s.kd", name);
    if (!memmem(module->bytes, module->size, descriptor, strlen(descriptor) + 1)) return not_found;
    *function = strdup(name);
    FILE *out = log_file();
    fprintf(out, "function %s\n", name);
    fclose(out);
    return success;
}

int hipModuleLaunchKernel(const char *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                          unsigned bz, unsigned lds, void *stream, void **parameters, void **extra) {
    if (parameters || !extra || (uintptr_t)extra[0] != 1 || (uintptr_t)extra[2] != 2 || (uintptr_t)extra[4] != 3)
        return invalid_value;
    if (!gx || !gy || !gz || lds > 160 * 1024) return invalid_value;
    size_t size = *(size_t *)extra[3];
    FILE *out = log_file();
    fprintf(out, "launch %s %u %u %u %u %u %u %u %p %zu ", function, gx, gy, gz, bx, by, bz, lds, stream, size);
    for (size_t i = 0; i < size; i++) fprintf(out, "%02x", ((unsigned char *)extra[1])[i]);
    fprintf(out, "\n");
    fclose(out);
    return success;
}
