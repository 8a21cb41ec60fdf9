/* A library that the dynamic linker refuses: it needs a function that no library has. */
int function_of_a_library_that_is_gone(void);

__attribute__((visibility("default"))) int clGetExtensionFunctionAddress(void) {
    return function_of_a_library_that_is_gone();
}
