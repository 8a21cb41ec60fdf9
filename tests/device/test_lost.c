/* A lost device. A few functions with table-driven answers replace those of the loader. */
/* ctest: quick */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "device/device.h"

static struct {
    cl_int created, marked, finished; /* answers */
    int queues;                       /* not released */
    bool was_finished;
} driver;

cl_command_queue clCreateCommandQueue(cl_context context, cl_device_id device, cl_command_queue_properties properties,
                                      cl_int *code) {
    (void)context, (void)device, (void)properties;
    *code = driver.created;
    if (driver.created) return NULL;
    ++driver.queues;
    return (cl_command_queue)&driver;
}

cl_int clEnqueueMarkerWithWaitList(cl_command_queue queue, cl_uint count, const cl_event *list, cl_event *event) {
    (void)queue, (void)count, (void)list, (void)event;
    return driver.marked;
}

cl_int clFinish(cl_command_queue queue) {
    (void)queue;
    driver.was_finished = true;
    return driver.finished;
}

cl_int clReleaseCommandQueue(cl_command_queue queue) {
    (void)queue;
    --driver.queues;
    return CL_SUCCESS;
}

static const cleat_device card = {.facts.name = "some card"};

/* Every call to a lost device fails, or the first one that waits for it. */
static void a_command_tells(void **state) {
    (void)state;
    static const struct {
        cl_int created, marked, finished;
        bool lost;
    } rows[] = {
        {CL_SUCCESS, CL_SUCCESS, CL_SUCCESS, false},
        {CL_OUT_OF_RESOURCES, CL_SUCCESS, CL_SUCCESS, true},
        {CL_SUCCESS, CL_OUT_OF_RESOURCES, CL_SUCCESS, true},
        {CL_SUCCESS, CL_SUCCESS, CL_OUT_OF_RESOURCES, true},
        {CL_OUT_OF_HOST_MEMORY, CL_SUCCESS, CL_SUCCESS, false},
        {CL_SUCCESS, CL_OUT_OF_HOST_MEMORY, CL_SUCCESS, false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
        memset(&driver, 0, sizeof driver);
        driver.created = rows[i].created, driver.marked = rows[i].marked, driver.finished = rows[i].finished;
        if (cleat_device_is_lost(&card) != rows[i].lost) fail_msg("row %zu", i);
        assert_int_equal(driver.queues, 0);
        assert_int_equal(driver.was_finished, !driver.created && !driver.marked);
    }
}

/* A memory shortage is reported as such unless the device is lost. */
static void an_error_is_explained(void **state) {
    (void)state;
    memset(&driver, 0, sizeof driver);
    cleat_error error = {0};
    cleat_status status = cleat_cl_fail(&error, CL_OUT_OF_RESOURCES, "enqueueing");
    assert_int_equal(status, CLEAT_ERR_DEVICE_MEMORY);
    assert_int_equal(cleat_device_explain(&card, status, &error), CLEAT_ERR_DEVICE_MEMORY);
    assert_null(strstr(error.text, "is lost"));
    driver.finished = CL_OUT_OF_RESOURCES;
    assert_int_equal(cleat_device_explain(&card, CLEAT_ERR_MEMORY, &error), CLEAT_ERR_MEMORY);
    assert_null(strstr(error.text, "is lost"));
    assert_int_equal(cleat_device_explain(&card, status, &error), CLEAT_ERR_DEVICE);
    assert_non_null(strstr(error.text, "'some card' is lost (enqueueing"));
    assert_int_equal(error.cl_code, CL_OUT_OF_RESOURCES);
    assert_int_equal(cleat_device_explain(&card, status, NULL), CLEAT_ERR_DEVICE);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_command_tells),
        cmocka_unit_test(an_error_is_explained),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
