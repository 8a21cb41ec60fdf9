/* A library that the dynamic linker refuses because of a missing function. */
int function_of_a_library_that_is_gone(void);

__attribute__((visibility("default"))) int clGetExtensionFunctionAddress(void) {
    return function_of_a_library_that_is_gone();
}
