/* Waits for an event that nobody sets. */
#include "begin.h"

int main(void) {
    begin();
    cl_event user = clCreateUserEvent(context, &e);
    printf("waiting\n");
    fflush(stdout);
    return clWaitForEvents(1, &user);
}
