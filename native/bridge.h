/* How the entries of a library reach Python.
 *
 * `tools/build_driver.py` writes one file for each library: it includes this one, defines a stub for
 * every function of a header, and lists their names. A stub puts its arguments into words and calls
 * `bridge_call`; `warploom.clients.attach` registers the Python function that serves it. Nothing here
 * needs Python's headers, so one build serves every version of it.
 *
 * A process without Python gets one: `warploom run` says in the environment where its library is
 * (WARPLOOM_LIBPYTHON), its home and its path.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* A value of any integer or pointer type as a word. */
#define WORD(value) ((int64_t)(value))

typedef int64_t (*bridge_server)(int32_t index, const int64_t *arguments);

/* What Python reads and writes; `warploom.clients.attach` has its mirror. */
typedef struct {
    _Atomic(bridge_server) serve; /* null until Python is attached */
    atomic_int started;           /* from now on a forked child may not come in */
    atomic_int ending;            /* from now on only the main thread may come in */
    atomic_int calls;             /* calls that go on */
    atomic_int interrupted;       /* Ctrl-C came in a call: the program's handler is for after it */
    int32_t count;
    const char *const *names;
    const int8_t *words; /* how many each function has */
    const char *library;
} bridge_control;

/* Each library defines these. */
static bridge_control bridge;
static const int64_t bridge_forked, bridge_closed, bridge_absent;
static const int bridge_version;

static atomic_int bridge_is_child;
static int bridge_started_python;
static atomic_int bridge_promised; /* 1 and the index of an initialization that is still to be done */
static atomic_int bridge_initialized; /* CUDA_VISIBLE_DEVICES is read before that only */
static int (*bridge_python_ends)(void);

/* Python's functions that each call needs. */
static struct {
    int (*ensure)(void);
    void (*release)(int);
    void (*fetch)(void **, void **, void **);
    void (*restore)(void *, void *, void *);
    void *(*thread_state)(void);
} bridge_python;

static float bridge_float_bits(float value, int32_t *bits) {
    memcpy(bits, &value, sizeof value);
    return value;
}

static inline int64_t bridge_float(float value) {
    int32_t bits;
    bridge_float_bits(value, &bits);
    return bits;
}

static void bridge_mark_child(void) {
    if (atomic_load(&bridge.started)) atomic_store(&bridge_is_child, 1);
}

static void *bridge_find(void *library, const char *name) {
    return dlsym(library ? library : RTLD_DEFAULT, name);
}

/* The last thing in a process whose Python we started: let it tell what it has to. */
static void bridge_finish(void) {
    bridge_server serve = atomic_load(&bridge.serve);
    if (serve && !atomic_load(&bridge_is_child)) serve(-1, NULL);
}

/* Read where Python is from the file beside the library, where the environment does not say. */
static void bridge_read_settings(void) {
    static const char *const variables[] = {"WARPLOOM_LIBPYTHON", "WARPLOOM_PYTHONHOME", "WARPLOOM_PATH"};
    char line[1 << 16];
    Dl_info found;
    if (getenv(variables[0]) || !dladdr((void *)bridge_read_settings, &found) || !found.dli_fname) return;
    const char *end = strrchr(found.dli_fname, '/');
    if (!end || end - found.dli_fname > 4000) return;
    snprintf(line, sizeof line, "%.*s/warploom_python", (int)(end - found.dli_fname), found.dli_fname);
    FILE *file = fopen(line, "re");
    for (int n = 0; file && n < 3 && fgets(line, sizeof line, file); ++n) {
        line[strcspn(line, "\n")] = 0;
        if (*line) setenv(variables[n], line, 0);
    }
    if (file) fclose(file);
}

/* Start Python in a process that has none; gives its library, or null. */
static void *bridge_start_python(void) {
    const char *path = getenv("WARPLOOM_LIBPYTHON");
    if (!path) {
        fprintf(stderr, "warploom: this program has no Python in it; start it with `warploom run`\n");
        return NULL;
    }
    void *library = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
    if (!library) {
        fprintf(stderr, "warploom: %s\n", dlerror());
        return NULL;
    }
    int (*is_initialized)(void) = bridge_find(library, "Py_IsInitialized");
    void (*initialize)(int) = bridge_find(library, "Py_InitializeEx");
    void *(*save_thread)(void) = bridge_find(library, "PyEval_SaveThread");
    if (!is_initialized || !initialize || !save_thread) return NULL;
    if (!is_initialized()) {
        const char *home = getenv("WARPLOOM_PYTHONHOME");
        const char *before = getenv("PYTHONHOME");
        if (home && !before) setenv("PYTHONHOME", home, 1);
        initialize(0);
        bridge_started_python = 1;
        if (home && !before) unsetenv("PYTHONHOME");
        save_thread();
        atexit(bridge_finish);
    }
    return library;
}

static const char bridge_import[] =
    "import ctypes, os, sys\n"
    "_get = ctypes.CDLL(None).getenv\n" /* Python's own copy is of when it began */
    "_get.restype = ctypes.c_char_p\n"
    "_path = os.fsdecode(_get(b'WARPLOOM_PATH') or b'').split(os.pathsep)\n"
    "sys.path.extend(p for p in _path if p and p not in sys.path)\n"
    "from warploom.clients.attach import attach\n"
    "attach(%llu)\n"
    "if %d:\n" /* Python's handler of Ctrl-C is not for a program without Python */
    "    import signal\n"
    "    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:\n"
    "        signal.signal(signal.SIGINT, signal.SIG_DFL)\n";

/* Make the server known, once; null where that cannot be. */
static bridge_server bridge_attach(void) {
    static pthread_mutex_t starting = PTHREAD_MUTEX_INITIALIZER;
    static void *python;
    void *library = NULL;
    bridge_read_settings();
    int (*is_initialized)(void) = bridge_find(NULL, "Py_IsInitialized");
    if (!is_initialized || !is_initialized()) {
        /* Nobody holds Python's lock while there is no Python, so waiting here is safe. */
        pthread_mutex_lock(&starting);
        if (!python) python = bridge_start_python();
        library = python;
        pthread_mutex_unlock(&starting);
        if (!library) return NULL;
    }
    int (*ensure)(void) = bridge_find(library, "PyGILState_Ensure");
    void (*release)(int) = bridge_find(library, "PyGILState_Release");
    int (*run)(const char *) = bridge_find(library, "PyRun_SimpleString");
    if (!ensure || !release || !run) return NULL;
    bridge_python_ends = bridge_find(library, "Py_IsFinalizing");
    if (!bridge_python_ends) bridge_python_ends = bridge_find(library, "_Py_IsFinalizing");
    bridge_python.ensure = ensure;
    bridge_python.release = release;
    bridge_python.fetch = bridge_find(library, "PyErr_Fetch");
    bridge_python.restore = bridge_find(library, "PyErr_Restore");
    bridge_python.thread_state = bridge_find(library, "PyGILState_GetThisThreadState");
    if (!bridge_python.fetch || !bridge_python.restore) return NULL;
    int state = ensure();
    if (!atomic_load(&bridge.serve)) {
        char text[sizeof bridge_import + 32];
        snprintf(text, sizeof text, bridge_import, (unsigned long long)(uintptr_t)&bridge,
                 bridge_started_python);
        run(text);
    }
    release(state);
    return atomic_load(&bridge.serve);
}

__attribute__((constructor)) static void bridge_load(void) {
    pthread_atfork(NULL, NULL, bridge_mark_child);
}

/* Questions that need no Python, by the names of their functions. */
enum { BRIDGE_OTHER, BRIDGE_INIT, BRIDGE_VERSION, BRIDGE_COUNT, BRIDGE_DEVICE, BRIDGE_POOL, BRIDGE_QUERY,
       BRIDGE_CONTEXT, BRIDGE_CONTEXT_DEVICE };

enum { BRIDGE_NO_DEVICE = 100 }; /* CUDA_ERROR_NO_DEVICE, cudaErrorNoDevice */

static const struct { const char *name; int8_t kind; } bridge_questions[] = {
    {"cuInit", BRIDGE_INIT},
    {"cuDriverGetVersion", BRIDGE_VERSION},
    {"cudaDriverGetVersion", BRIDGE_VERSION},
    {"cudaRuntimeGetVersion", BRIDGE_VERSION},
    {"cuDeviceGetCount", BRIDGE_COUNT},
    {"cudaGetDeviceCount", BRIDGE_COUNT},
    {"cuDeviceGet", BRIDGE_DEVICE},
    {"cuCtxGetCurrent", BRIDGE_CONTEXT},
    {"cuCtxGetDevice", BRIDGE_CONTEXT_DEVICE},
    {"cuDeviceGetDefaultMemPool", BRIDGE_POOL},
    {"cudaDeviceGetDefaultMemPool", BRIDGE_POOL},
    {"cuStreamQuery", BRIDGE_QUERY},
    {"cudaStreamQuery", BRIDGE_QUERY},
    {"cuEventQuery", BRIDGE_QUERY},
    {"cudaEventQuery", BRIDGE_QUERY},
};

static int bridge_question(int32_t index) {
    for (size_t n = 0; n < sizeof bridge_questions / sizeof *bridge_questions; ++n)
        if (!strcmp(bridge.names[index], bridge_questions[n].name)) return bridge_questions[n].kind;
    return BRIDGE_OTHER;
}

/* Answer a question if it is one: there is one device, whose work is done when it is asked for, and
 * pools and devices are numbers. Gives 1 if it was one. */
static int bridge_answer(int question, const int64_t *arguments) {
    static int64_t pool;
    switch (question) {
    case BRIDGE_OTHER: return 0;
    case BRIDGE_VERSION: *(int *)arguments[0] = bridge_version; return 1;
    case BRIDGE_COUNT: *(int *)arguments[0] = 1; return 1;
    case BRIDGE_DEVICE: *(int *)arguments[0] = 0; return arguments[1] == 0;
    case BRIDGE_POOL: *(void **)arguments[0] = &pool; return 1;
    case BRIDGE_CONTEXT: *(void **)arguments[0] = NULL; return 1;
    case BRIDGE_CONTEXT_DEVICE: *(int *)arguments[0] = 0; return 1;
    default: return 1;
    }
}

/* Python ends, and with it all that was ever allocated: giving things back has nothing to do,
 * there is one device, and a context is what callers set it to before they ask: inactive. */
static int64_t bridge_end(int32_t index, const int64_t *arguments) {
    static const char *const gives_back[] = {"Free", "Trim", "Destroy", "Unload", "Release", "Unregister",
                                             "Synchronize", "Detach", "PopCurrent", "PushCurrent",
                                             "SetCurrent", "PrimaryCtxGetState", "SetDevice",
                                             "WaitForEvents", "clFinish", "clFlush"};
    for (size_t n = 0; n < sizeof gives_back / sizeof *gives_back; ++n)
        if (strstr(bridge.names[index], gives_back[n])) return 0;
    return bridge_answer(bridge_question(index), arguments) ? 0 : bridge_closed;
}

static int bridge_is_main_thread(void) {
    return syscall(SYS_gettid) == getpid();
}

/* Whether this thread is none of Python's in a process that is: what it asks may be what a thread that
 * holds Python's lock waits for. */
static int bridge_is_foreign(void) {
    if (bridge_started_python || bridge_is_main_thread()) return 0;
    void *(*thread_state)(void) = bridge_python.thread_state;
    if (!thread_state) thread_state = bridge_find(NULL, "PyGILState_GetThisThreadState");
    if (!thread_state || thread_state()) return 0;
    int (*is_initialized)(void) = bridge_find(NULL, "Py_IsInitialized");
    return is_initialized && is_initialized();
}

enum { BRIDGE_PATIENCE = 10 }; /* seconds */

static atomic_int bridge_waiting, bridge_entered; /* foreign threads: that wait for Python's lock; calls */

/* Say once that a foreign thread waits for long: what holds Python's lock may wait for that thread. */
static void *bridge_watch(void *unused) {
    int before = 0;
    for (int seconds = 0; seconds < BRIDGE_PATIENCE; sleep(1)) {
        int entered = atomic_load(&bridge_entered);
        seconds = atomic_load(&bridge_waiting) && entered == before ? seconds + 1 : 0;
        before = entered;
    }
    fprintf(stderr,
            "warploom: a thread of native code calls the driver, and has waited %d s for Python's lock.\n"
            "  If the code that holds the lock waits for this thread, neither will go on: Warploom's\n"
            "  driver is written in Python. Release the lock before waiting (ctypes.CDLL, not PyDLL;\n"
            "  Py_BEGIN_ALLOW_THREADS; nanobind's and pybind11's gil_scoped_release).\n",
            BRIDGE_PATIENCE);
    return unused;
}

/* Get Python's lock for a call, and the server; null where that cannot be. */
static bridge_server bridge_enter(int *state) {
    static atomic_int is_watched;
    pthread_t watch;
    int is_foreign = bridge_is_foreign();
    if (is_foreign && !atomic_exchange(&is_watched, 1) && !pthread_create(&watch, NULL, bridge_watch, NULL))
        pthread_detach(watch);
    atomic_fetch_add(&bridge_waiting, is_foreign);
    bridge_server serve = atomic_load(&bridge.serve);
    if (!serve) serve = bridge_attach();
    if (serve) *state = bridge_python.ensure();
    atomic_fetch_sub(&bridge_waiting, is_foreign);
    atomic_fetch_add(&bridge_entered, is_foreign);
    return serve;
}

static int64_t bridge_serve(int32_t index, const int64_t *arguments) {
    if (bridge_python_ends && bridge_python_ends()) return bridge_end(index, arguments);
    int state = 0;
    bridge_server serve = bridge_enter(&state);
    if (!serve) return bridge_absent;
    /* Destructors call while an exception of Python's is on its way, which is not for us. */
    void *type, *value, *trace;
    bridge_python.fetch(&type, &value, &trace);
    int promised = atomic_exchange(&bridge_promised, 0) - 1;
    if (promised >= 0 && promised != index) serve(promised, (const int64_t[]){0});
    int64_t code = serve(index, arguments);
    bridge_python.restore(type, value, trace);
    bridge_python.release(state);
    if (atomic_exchange(&bridge.interrupted, 0)) raise(SIGINT);
    return code;
}

/* Whether CUDA_VISIBLE_DEVICES shows device 0: 1 if it does, 0 if it hides it, -1 if it names a UUID,
 * which Python compares. */
static int bridge_shows_device(void) {
    const char *visible = getenv("CUDA_VISIBLE_DEVICES");
    if (!visible) return 1;
    char *end;
    long first = strtol(visible, &end, 10);
    if (end == visible && strstr(visible, "GPU-")) return -1;
    return end > visible && first == 0;
}

/* Answer what a foreign thread asks first, without Python's lock: initialization is promised, and done
 * by the next call; no device if that is hidden. Gives 1 if that is all, and writes the result's code. */
static int bridge_answers_foreign(int32_t index, const int64_t *arguments, int64_t *code) {
    *code = 0;
    int question = bridge_question(index);
    int promised = atomic_load(&bridge_promised) != 0;
    int begins = question == BRIDGE_INIT || question == BRIDGE_VERSION;
    int follows = promised && (question == BRIDGE_COUNT || question == BRIDGE_DEVICE);
    if (!(begins || follows) || !bridge_is_foreign()) return 0;
    if (question == BRIDGE_INIT) {
        int shows = atomic_load(&bridge_initialized) ? 1 : bridge_shows_device();
        if (arguments[0] || shows < 0) return 0;
        if (!shows) {
            *code = BRIDGE_NO_DEVICE;
            return 1;
        }
        atomic_store(&bridge_promised, index + 1);
    }
    return bridge_answer(question, arguments);
}

/* A thread that waits for Python's lock when Python ends is ended by it, in the middle of C++ code:
 * so Python first turns other threads away, and waits for those that have come in. */
static int64_t bridge_call(int32_t index, const int64_t *arguments) {
    if (atomic_load(&bridge_is_child)) return bridge_forked;
    int64_t answered;
    if (bridge_answers_foreign(index, arguments, &answered)) return answered;
    atomic_fetch_add(&bridge.calls, 1);
    int refused = atomic_load(&bridge.ending) && !bridge_is_main_thread();
    int64_t code = refused ? bridge_end(index, arguments) : bridge_serve(index, arguments);
    atomic_fetch_sub(&bridge.calls, 1);
    if (!code && bridge_question(index) == BRIDGE_INIT) atomic_store(&bridge_initialized, 1);
    /* CUDA's runtime gives a number of devices with this error, too. */
    int counts_none = code == BRIDGE_NO_DEVICE && bridge_question(index) == BRIDGE_COUNT;
    if (counts_none && arguments[0]) *(int *)arguments[0] = 0;
    return code;
}
