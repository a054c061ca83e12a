/* The order of commands: user events, wait lists, queues in and out of order, callbacks, threads. */
#include "begin.h"
#include <pthread.h>

static int called[8], calls;

static void CL_CALLBACK note(cl_event event, cl_int status, void *data) {
    (void)event;
    SAME(status, ((int *)data)[1]);
    called[calls++] = *(int *)data;
}

static cl_int status_of(cl_event event) {
    cl_int status = 99;
    SAME(clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status, NULL), 0);
    return status;
}

/* A command waits for a user event, and later ones in its queue for it. */
static void check_user_events(cl_mem buffer) {
    int one = 1, two = 2, host = 0, first[2] = {1, CL_COMPLETE}, second[2] = {2, CL_COMPLETE};
    cl_event user = clCreateUserEvent(context, &e), a, b;
    SAME(clEnqueueWriteBuffer(queue, buffer, 0, 0, 4, &one, 1, &user, &a), 0);
    SAME(clEnqueueWriteBuffer(queue, buffer, 0, 4, 4, &two, 0, NULL, &b), 0);
    SAME(clSetEventCallback(a, CL_COMPLETE, note, first), 0);
    SAME(clSetEventCallback(b, CL_COMPLETE, note, second), 0);
    SAME(status_of(user), CL_SUBMITTED);
    SAME(status_of(a), CL_QUEUED);
    SAME(status_of(b), CL_QUEUED);
    SAME(calls, 0);
    SAME(clSetUserEventStatus(user, CL_COMPLETE), 0);
    SAME(clWaitForEvents(1, &b), 0);
    SAME(status_of(a), CL_COMPLETE);
    SAME(calls, 2);
    SAME(called[0], 1);
    SAME(called[1], 2);
    SAME(clEnqueueReadBuffer(queue, buffer, 1, 4, 4, &host, 0, NULL, NULL), 0);
    SAME(host, 2);
    clReleaseEvent(user), clReleaseEvent(a), clReleaseEvent(b);
}

/* A user event that ends with an error ends what waits for it, too. */
static void check_failures(cl_mem buffer) {
    int one = 77, host = 0, failed[2] = {3, CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST};
    cl_event user = clCreateUserEvent(context, &e), a;
    calls = 0;
    SAME(clEnqueueWriteBuffer(queue, buffer, 0, 0, 4, &one, 1, &user, &a), 0);
    SAME(clSetEventCallback(a, CL_COMPLETE, note, failed), 0);
    SAME(clSetUserEventStatus(user, -5), 0);
    SAME(clWaitForEvents(1, &a), CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST);
    SAME(status_of(a), CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST);
    SAME(calls, 1);
    SAME(clFinish(queue), 0);
    SAME(clEnqueueReadBuffer(queue, buffer, 1, 0, 4, &host, 0, NULL, NULL), 0);
    SAME(host, 1);
    SAME(clEnqueueReadBuffer(queue, buffer, 1, 0, 4, &host, 1, &user, NULL), CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST);
    clReleaseEvent(user), clReleaseEvent(a);
}

/* Out of order, only a barrier makes a command wait for one before it. */
static void check_out_of_order(cl_mem buffer) {
    cl_queue_properties flags[] = {CL_QUEUE_PROPERTIES, CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE | CL_QUEUE_PROFILING_ENABLE, 0};
    cl_command_queue free_ = clCreateCommandQueueWithProperties(context, device, flags, &e);
    int one = 10, two = 20, three = 30;
    cl_ulong times[5];
    cl_event user = clCreateUserEvent(context, &e), a, b, barrier, c, marker;
    SAME(clEnqueueWriteBuffer(free_, buffer, 0, 0, 4, &one, 1, &user, &a), 0);
    SAME(clEnqueueWriteBuffer(free_, buffer, 0, 4, 4, &two, 0, NULL, &b), 0);
    SAME(clEnqueueBarrierWithWaitList(free_, 0, NULL, &barrier), 0);
    SAME(clEnqueueWriteBuffer(free_, buffer, 0, 0, 4, &three, 0, NULL, &c), 0);
    SAME(clEnqueueMarkerWithWaitList(free_, 1, &b, &marker), 0);
    SAME(clWaitForEvents(1, &b), 0);
    SAME(status_of(b), CL_COMPLETE);
    SAME(status_of(a), CL_QUEUED);
    SAME(status_of(barrier), CL_QUEUED);
    SAME(status_of(c), CL_QUEUED);
    SAME(clSetUserEventStatus(user, CL_COMPLETE), 0);
    SAME(clFinish(free_), 0);
    SAME(status_of(c), CL_COMPLETE);
    int host[2];
    SAME(clEnqueueReadBuffer(queue, buffer, 1, 0, 8, host, 0, NULL, NULL), 0);
    SAME(host[0], 30);
    SAME(host[1], 20);
    for (int n = 0; n < 5; ++n)
        SAME(clGetEventProfilingInfo(c, CL_PROFILING_COMMAND_QUEUED + n, 8, times + n, NULL), 0);
    for (int n = 1; n < 5; ++n) SAME(times[n] >= times[n - 1], 1);
    clReleaseEvent(user), clReleaseEvent(a), clReleaseEvent(b), clReleaseEvent(barrier);
    clReleaseEvent(c), clReleaseEvent(marker), clReleaseCommandQueue(free_);
}

static void *set_later(void *event) {
    struct timespec pause = {0, 50000000};
    nanosleep(&pause, NULL);
    SAME(clSetUserEventStatus(*(cl_event *)event, CL_COMPLETE), 0);
    return NULL;
}

static void *add_ones(void *data) {
    cl_mem *buffers = data;
    cl_int code;
    cl_command_queue own = clCreateCommandQueueWithProperties(context, device, NULL, &code);
    for (int n = 0; n < 50; ++n) {
        int value = n;
        SAME(clEnqueueWriteBuffer(own, buffers[0], 0, 0, 4, &value, 0, NULL, NULL), 0);
        SAME(clEnqueueCopyBuffer(own, buffers[0], buffers[1], 0, 0, 4, 0, NULL, NULL), 0);
        SAME(clEnqueueReadBuffer(own, buffers[1], 1, 0, 4, &value, 0, NULL, NULL), 0);
        SAME(value, n);
    }
    SAME(clReleaseCommandQueue(own), 0);
    return NULL;
}

int main(void) {
    begin();
    cl_mem buffer = clCreateBuffer(context, 0, 64, NULL, &e);
    check_user_events(buffer);
    check_failures(buffer);
    check_out_of_order(buffer);

    /* A call that blocks waits for what another thread sets. */
    pthread_t threads[4];
    cl_event user = clCreateUserEvent(context, &e);
    int host = 0;
    pthread_create(threads, NULL, set_later, &user);
    SAME(clEnqueueReadBuffer(queue, buffer, 1, 0, 4, &host, 1, &user, NULL), 0);
    SAME(host, 30);
    pthread_join(threads[0], NULL);
    clReleaseEvent(user);

    cl_mem pairs[4][2];
    for (int n = 0; n < 4; ++n) {
        for (int m = 0; m < 2; ++m) pairs[n][m] = clCreateBuffer(context, 0, 4, NULL, &e);
        pthread_create(threads + n, NULL, add_ones, pairs[n]);
    }
    for (int n = 0; n < 4; ++n) pthread_join(threads[n], NULL);
    return finish();
}
