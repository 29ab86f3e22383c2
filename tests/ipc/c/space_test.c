/* <carousel/space.h> between two processes: space_test HOLDER CASE, where HOLDER is carousel-ipc-client. The
 * process that is killed is this program again: space_test peer. */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

enum { unit = 4096, pool_bytes = 64 * unit };

struct sample {
    uint64_t number;
    double value;
};
struct picture {
    uint32_t width, height, number;
};

static const char *program, *holder_program;
static struct process holder;

static void start_holder(void) {
    const char* const hold[] = {holder_program, "hold", "c", "-", "0", "-", "0", NULL};
    holder = start(hold);
}

/* All primitives of the test, as both processes open them. */
struct all {
    carousel_space* space;
    carousel_semaphore* turn;
    carousel_pool* frames;
    carousel_queue* samples;
    carousel_queue* empty;
    carousel_block_queue* travelling;
    carousel_work_queue* tasks;
};

static struct all open_all(void) {
    struct all a;
    const carousel_space_options options = {sizeof options, LONG};
    OK(carousel_space_open("c", &options, &a.space));
    OK(carousel_semaphore_open(a.space, "turn", 1, &a.turn));
    OK(carousel_pool_open(a.space, "frames", pool_bytes, unit, CAROUSEL_HOST, &a.frames));
    OK(carousel_queue_open(a.space, "samples", 8, sizeof(struct sample), "sample", &a.samples));
    OK(carousel_queue_open(a.space, "empty", 8, sizeof(uint64_t), "u", &a.empty));
    OK(carousel_block_queue_open(a.space, "travelling", a.frames, 4, sizeof(struct picture), "picture",
                                 &a.travelling));
    OK(carousel_work_queue_open(a.space, "tasks", 8, sizeof(uint32_t), 2, "u", &a.tasks));
    return a;
}

static void close_all(struct all a) {
    OK(carousel_space_close(a.space)); /* the others keep the space open */
    OK(carousel_work_queue_close(a.tasks));
    OK(carousel_block_queue_close(a.travelling));
    OK(carousel_queue_close(a.empty));
    OK(carousel_queue_close(a.samples));
    OK(carousel_pool_close(a.frames));
    OK(carousel_semaphore_close(a.turn));
}

static carousel_pool_state pool_state(carousel_pool* pool) {
    carousel_pool_state s = {.size = sizeof s};
    OK(carousel_pool_get_state(pool, &s));
    return s;
}

/* Holds one object of each kind, shares a block, and waits until it is killed. */
static int run_peer(void) {
    struct all a = open_all();
    carousel_permit* permit;
    carousel_block *kept, *sent;
    carousel_lease* lease;
    carousel_task* task;
    struct sample element;
    uint32_t number;
    uint64_t nothing;
    carousel_share_name name;
    carousel_queue* names;
    OK(carousel_semaphore_acquire(a.turn, LONG, &permit));
    OK(carousel_pool_allocate(a.frames, 3 * unit - 1, LONG, &kept));
    memset(carousel_block_data(kept), 0x5A, 3 * unit);
    OK(carousel_pool_allocate(a.frames, unit, LONG, &sent));
    memset(carousel_block_data(sent), 0x21, unit);
    OK(carousel_block_queue_send(a.travelling, sent, &(struct picture){64, 16, 7}, LONG));
    OK(carousel_queue_lease(a.samples, &element, LONG, &lease));
    CHECK(element.number == 1);
    OK(carousel_work_queue_claim(a.tasks, &number, LONG, &task));
    CHECK(number == 40);
    OK(carousel_block_share(kept, &name));
    OK(carousel_queue_open(a.space, "names", 2, sizeof name, NULL, &names));
    OK(carousel_queue_push(names, &name, LONG));
    CHECK(write(STDOUT_FILENO, "r", 1) == 1);
    return carousel_queue_pop(a.empty, &nothing, CAROUSEL_NO_LIMIT) == CAROUSEL_OK ? 3 : 4;
}

/* A second process is killed while it holds one object of each kind and waits. */
static void test_kill(void) {
    struct all a = open_all();
    carousel_task_id id;
    OK(carousel_queue_push(a.samples, &(struct sample){1, 0.5}, 0));
    OK(carousel_queue_push(a.samples, &(struct sample){2, 1.0}, 0));
    OK(carousel_work_queue_submit(a.tasks, &(uint32_t){40}, 0, &id));
    const char* const argv[] = {program, "peer", NULL};
    carousel_death_watch* deaths;
    carousel_death death = {.size = sizeof death};
    OK(carousel_space_watch_deaths(a.space, &deaths));
    struct process peer = start(argv);
    wait_for_output(peer);
    STATUS(CAROUSEL_TIMED_OUT, carousel_death_watch_next(deaths, 0, &death));

    /* while it lives */
    carousel_permit* permit = NULL;
    STATUS(CAROUSEL_TIMED_OUT, carousel_semaphore_acquire(a.turn, 0, &permit));
    STATUS(CAROUSEL_TIMED_OUT, carousel_semaphore_acquire(a.turn, SECOND / 100, &permit));
    char holder[40];
    snprintf(holder, sizeof holder, "process %d", (int)peer.pid);
    CHECK(strstr(carousel_last_error(), holder) != NULL);
    CHECK(permit == NULL);
    carousel_task_state state;
    OK(carousel_work_queue_get_task_state(a.tasks, id, &state));
    CHECK(state == CAROUSEL_TASK_CLAIMED);
    CHECK(pool_state(a.frames).blocks == 1 && pool_state(a.frames).in_queues == 1);

    /* its block, read-only */
    carousel_queue* names;
    carousel_share_name name;
    carousel_share* share;
    carousel_block_info info = {.size = sizeof info};
    OK(carousel_queue_open(a.space, "names", 2, sizeof name, NULL, &names));
    OK(carousel_queue_pop(names, &name, LONG));
    OK(carousel_share_open(a.frames, &name, &share));
    OK(carousel_share_get_info(share, &info));
    CHECK(info.bytes == 3 * unit && info.memory == CAROUSEL_HOST && info.gpu_ordinal == -1);
    CHECK(((const unsigned char*)info.data)[3 * unit - 1] == 0x5A);
    OK(carousel_share_check(share));

    kill_process(peer);

    /* its death is reported once, with what it owned */
    carousel_owned_block owned = {.size = sizeof owned};
    OK(carousel_death_watch_next(deaths, LONG, &death));
    CHECK(death.pid == peer.pid && death.blocks == 1 && death.block_bytes == 3 * unit && death.permits == 1 &&
          death.leases == 1 && death.tasks == 1 && death.listed == 1);
    OK(carousel_death_watch_get_block(deaths, 0, &owned));
    CHECK(owned.offset == info.offset && owned.bytes == info.bytes && strcmp(owned.pool, "frames") == 0);
    STATUS(CAROUSEL_INVALID_ARGUMENT, carousel_death_watch_get_block(deaths, 1, &owned));
    CHECK(pool_state(a.frames).blocks == 0); /* reported after the repair */
    STATUS(CAROUSEL_TIMED_OUT, carousel_death_watch_next(deaths, SECOND / 20, &death));
    OK(carousel_death_watch_close(deaths));

    /* all that it held is available again, once */
    OK(carousel_semaphore_acquire(a.turn, LONG, &permit));
    OK(carousel_permit_release(permit));
    carousel_task* task;
    carousel_task_info about = {.size = sizeof about};
    uint32_t number = 0;
    OK(carousel_work_queue_claim(a.tasks, &number, LONG, &task));
    OK(carousel_task_get_info(task, &about));
    CHECK(number == 40 && about.failed_attempts == 1 && about.id.place == id.place &&
          about.id.generation == id.generation);
    struct sample element;
    carousel_lease* lease;
    for (uint64_t k = 1; k <= 2; ++k) {
        OK(carousel_queue_lease(a.samples, &element, LONG, &lease));
        CHECK(element.number == k);
        OK(carousel_lease_commit(lease));
    }
    STATUS(CAROUSEL_TIMED_OUT, carousel_queue_lease(a.samples, &element, 0, &lease));
    carousel_block* block;
    struct picture picture;
    OK(carousel_block_queue_receive(a.travelling, &picture, LONG, &block));
    CHECK(picture.width == 64 && picture.height == 16 && picture.number == 7);
    CHECK(((const unsigned char*)carousel_block_data(block))[unit - 1] == 0x21);
    OK(carousel_block_free(block));
    OK(carousel_pool_allocate(a.frames, pool_bytes, LONG, &block)); /* the whole pool: also its other block */
    STATUS(CAROUSEL_NOT_HELD, carousel_share_check(share));
    OK(carousel_share_close(share));
    STATUS(CAROUSEL_NOT_HELD, carousel_share_open(a.frames, &name, &share));
    OK(carousel_block_free(block));

    /* a second failed attempt makes it a dead letter */
    OK(carousel_task_fail(task));
    OK(carousel_work_queue_get_task_state(a.tasks, id, &state));
    CHECK(state == CAROUSEL_TASK_DEAD_LETTER);
    OK(carousel_work_queue_take_dead_letter(a.tasks, &number));
    CHECK(number == 40);
    STATUS(CAROUSEL_TIMED_OUT, carousel_work_queue_take_dead_letter(a.tasks, &number));
    OK(carousel_queue_close(names));
    close_all(a);
}

static void* push_later(void* with) {
    usleep(100000);
    OK(carousel_queue_push(((struct all*)with)->empty, &(uint64_t){9}, LONG));
    return NULL;
}

static int end_after(void* with) { return ++*(int*)with > 2; }

/* A wait check that ends the wait at the moment at which the wait could succeed. */
static int end_when_pushed(void* with) {
    pthread_t other;
    CHECK(pthread_create(&other, NULL, push_later, with) == 0 && pthread_join(other, NULL) == 0);
    return 1;
}

/* Timeouts, waits that are ended, and threads. */
static void test_waits(void) {
    struct all a = open_all();
    uint64_t number = 0;
    int64_t begin = now_ns();
    STATUS(CAROUSEL_TIMED_OUT, carousel_queue_pop(a.empty, &number, SECOND / 20));
    CHECK(now_ns() - begin >= SECOND / 20 && now_ns() - begin < 10 * SECOND);
    CHECK(strstr(carousel_last_error(), "\"empty\": timeout after 50 ms") != NULL);
    STATUS(CAROUSEL_INVALID_ARGUMENT, carousel_queue_pop(a.empty, &number, -2));
    pthread_t other;
    CHECK(pthread_create(&other, NULL, push_later, &a) == 0);
    OK(carousel_queue_pop(a.empty, &number, CAROUSEL_NO_LIMIT));
    CHECK(number == 9 && pthread_join(other, NULL) == 0);

    int calls = 0;
    carousel_block *all, *block;
    carousel_permit *held, *permit;
    carousel_space* space;
    OK(carousel_pool_allocate(a.frames, pool_bytes, 0, &all));
    OK(carousel_semaphore_acquire(a.turn, 0, &held));
    carousel_set_wait_check(end_after, &calls);
    STATUS(CAROUSEL_INTERRUPTED, carousel_queue_pop(a.empty, &number, CAROUSEL_NO_LIMIT));
    calls = 0;
    STATUS(CAROUSEL_INTERRUPTED, carousel_pool_allocate(a.frames, unit, CAROUSEL_NO_LIMIT, &block));
    calls = 0;
    STATUS(CAROUSEL_INTERRUPTED, carousel_semaphore_acquire(a.turn, CAROUSEL_NO_LIMIT, &permit));
    calls = 0;
    STATUS(CAROUSEL_INTERRUPTED, carousel_space_open("no-such-space", NULL, &space));
    kill(holder.pid, SIGSTOP); /* also while the holder does not reply */
    calls = 0;
    begin = now_ns();
    STATUS(CAROUSEL_INTERRUPTED, carousel_space_open("c", NULL, &space));
    CHECK(now_ns() - begin < 2 * SECOND);
    kill(holder.pid, SIGCONT);
    carousel_set_wait_check(end_when_pushed, &a);
    STATUS(CAROUSEL_INTERRUPTED, carousel_queue_pop(a.empty, &number, CAROUSEL_NO_LIMIT));
    carousel_set_wait_check(NULL, NULL);
    OK(carousel_queue_pop(a.empty, &number, 0)); /* the wait has changed nothing */
    STATUS(CAROUSEL_TIMED_OUT, carousel_queue_pop(a.empty, &number, 1));
    carousel_semaphore_state state = {.size = sizeof state};
    OK(carousel_semaphore_get_state(a.turn, &state));
    CHECK(state.waiting == 0 && state.free == 0);
    OK(carousel_permit_release(held));
    OK(carousel_block_free(all));
    const carousel_space_options options = {sizeof options, SECOND / 100};
    STATUS(CAROUSEL_NO_HOLDER, carousel_space_open("no-such-space", &options, &space));
    CHECK(strstr(carousel_last_error(), "carousel hold no-such-space") != NULL);
    close_all(a);
}

/* Arguments that make no sense are refused, and change nothing. */
static void test_arguments(void) {
    struct all a = open_all();
    uint64_t number = 5;
    carousel_semaphore* semaphore = NULL;
    carousel_queue* queue = NULL;
    carousel_pool* pool = NULL;
    carousel_block* block = NULL;
    carousel_work_queue* work = NULL;
    carousel_block_queue* blocks = NULL;
    carousel_task_state task;
    STATUS(CAROUSEL_INVALID_ARGUMENT, carousel_space_open(NULL, NULL, &a.space));
    STATUS(CAROUSEL_REFUSED, carousel_space_open("a/b", NULL, &a.space));
    STATUS(CAROUSEL_INVALID_ARGUMENT, carousel_space_open("c", &(carousel_space_options){0, 0}, &a.space));
    STATUS(CAROUSEL_INVALID_ARGUMENT, carousel_semaphore_open(NULL, "x", 1, &semaphore));
    STATUS(CAROUSEL_INVALID_ARGUMENT, carousel_semaphore_open(a.space, "x", 1, NULL));
    STATUS(CAROUSEL_REFUSED, carousel_semaphore_open(a.space, "x", 0, &semaphore));
    STATUS(CAROUSEL_REFUSED, carousel_semaphore_open(a.space, "", 1, &semaphore));
    STATUS(CAROUSEL_REFUSED, carousel_semaphore_open(a.space, "turn", 2, &semaphore)); /* another shape */
    CHECK(strstr(carousel_last_error(), "a semaphore of 1 permits") != NULL);
    STATUS(CAROUSEL_REFUSED,
           carousel_queue_open(a.space, "samples", 8, sizeof(struct sample), "tile", &queue));
    STATUS(CAROUSEL_REFUSED, carousel_pool_open(a.space, "x", 1000, 1000, CAROUSEL_HOST, &pool));
    STATUS(CAROUSEL_REFUSED, carousel_pool_open(a.space, "x", 1u << 30, unit, CAROUSEL_HOST, &pool));
    STATUS(CAROUSEL_INVALID_ARGUMENT,
           carousel_pool_open(a.space, "x", unit, unit, (carousel_memory)2, &pool));
    STATUS(CAROUSEL_REFUSED, carousel_pool_open(a.space, "x", unit, unit, CAROUSEL_GPU, &pool));
    CHECK(strstr(carousel_last_error(), "carousel_space_map_gpu") != NULL);
    STATUS(CAROUSEL_INVALID_ARGUMENT, carousel_space_map_gpu(a.space, -1));
    STATUS(CAROUSEL_REFUSED, carousel_space_map_gpu(a.space, 0)); /* the space has no GPU memory */
    STATUS(CAROUSEL_REFUSED, carousel_pool_allocate(a.frames, pool_bytes + 1, LONG, &block));
    STATUS(CAROUSEL_REFUSED, carousel_work_queue_open(a.space, "x", 8, 4, 16, NULL, &work));
    STATUS(CAROUSEL_INVALID_ARGUMENT, carousel_queue_push(a.samples, NULL, 0));
    STATUS(CAROUSEL_INVALID_ARGUMENT, carousel_queue_pop((carousel_queue*)(void*)a.turn, &number, 0));
    CHECK(strstr(carousel_last_error(), "another kind") != NULL);
    STATUS(CAROUSEL_INVALID_ARGUMENT, carousel_lease_commit(NULL));
    STATUS(CAROUSEL_INVALID_ARGUMENT,
           carousel_work_queue_get_task_state(a.tasks, (carousel_task_id){8, 0}, &task));
    carousel_pool_state small = {0};
    STATUS(CAROUSEL_INVALID_ARGUMENT, carousel_pool_get_state(a.frames, &small));
    carousel_space* other;
    OK(carousel_space_open("c", NULL, &other)); /* another client of the same process */
    STATUS(CAROUSEL_INVALID_ARGUMENT, carousel_block_queue_open(other, "travelling", a.frames, 4,
                                                                sizeof(struct picture), NULL, &blocks));
    OK(carousel_space_close(other));

    /* a block of another pool can't be sent, and still belongs to its owner */
    OK(carousel_pool_open(a.space, "other", unit, unit, CAROUSEL_HOST, &pool));
    OK(carousel_pool_allocate(pool, 1, 0, &block));
    STATUS(CAROUSEL_REFUSED, carousel_block_queue_send(a.travelling, block, &(struct picture){1, 1, 1}, 0));
    STATUS(CAROUSEL_INVALID_ARGUMENT, carousel_block_queue_send(a.travelling, block, NULL, 0));
    carousel_share_name name;
    carousel_share* share;
    OK(carousel_block_share(block, &name));
    STATUS(CAROUSEL_INVALID_ARGUMENT, carousel_share_open(a.frames, &name, &share));
    name.word[1] |= 77; /* outside the pool */
    STATUS(CAROUSEL_NOT_HELD, carousel_share_open(pool, &name, &share));
    CHECK(pool_state(pool).blocks == 1);
    OK(carousel_block_free(block));
    OK(carousel_block_free(NULL));
    OK(carousel_pool_close(pool));

    /* an older program's smaller structure */
    struct {
        size_t size;
        uint64_t bytes;
        unsigned char canary;
    } older = {16, 0, 0x77};
    OK(carousel_pool_get_state(a.frames, (carousel_pool_state*)(void*)&older));
    CHECK(older.size == 16 && older.bytes == pool_bytes && older.canary == 0x77);
    CHECK(number == 5 && semaphore == NULL && queue == NULL && work == NULL && blocks == NULL);
    CHECK(strcmp(carousel_status_name(CAROUSEL_FORKED), "CAROUSEL_FORKED") == 0);
    CHECK(strcmp(carousel_status_name((carousel_status)99), "?") == 0);
    CHECK(strchr(carousel_space_library_version(), '.') != NULL);
    close_all(a);
}

/* A full queue keeps the sender's block; the counters show what is where. */
static void test_full(void) {
    struct all a = open_all();
    carousel_block* block[5];
    for (int k = 0; k < 5; ++k) OK(carousel_pool_allocate(a.frames, unit, 0, &block[k]));
    for (int k = 0; k < 4; ++k)
        OK(carousel_block_queue_send(a.travelling, block[k], &(struct picture){0}, 0));
    STATUS(CAROUSEL_TIMED_OUT, carousel_block_queue_send(a.travelling, block[4], &(struct picture){0}, 0));
    STATUS(CAROUSEL_TIMED_OUT,
           carousel_block_queue_send(a.travelling, block[4], &(struct picture){0}, SECOND / 100));
    carousel_queue_state full = {.size = sizeof full};
    OK(carousel_block_queue_get_state(a.travelling, &full));
    CHECK(full.elements == 4 && full.lost == 0 && full.abandoned == 0);
    CHECK(carousel_block_data(block[4]) != NULL && pool_state(a.frames).blocks == 1);
    OK(carousel_block_free(block[4]));
    struct picture about;
    for (int k = 0; k < 4; ++k) {
        OK(carousel_block_queue_receive(a.travelling, &about, 0, &block[k]));
        OK(carousel_block_free(block[k]));
    }
    CHECK(pool_state(a.frames).free_bytes == pool_bytes);
    carousel_lease* lease;
    struct sample element;
    OK(carousel_queue_push(a.samples, &(struct sample){3, 0}, 0));
    OK(carousel_queue_lease(a.samples, &element, 0, &lease));
    OK(carousel_lease_return(lease));
    carousel_queue_state one = {.size = sizeof one};
    OK(carousel_queue_get_state(a.samples, &one));
    CHECK(one.elements == 1);
    carousel_work_queue_state tasks = {.size = sizeof tasks};
    OK(carousel_work_queue_submit(a.tasks, &(uint32_t){1}, 0, NULL));
    OK(carousel_work_queue_get_state(a.tasks, &tasks));
    CHECK(tasks.waiting == 1 && tasks.dead_letters == 0);
    carousel_shape shape = {.size = sizeof shape};
    OK(carousel_space_find(a.space, "travelling", &shape));
    CHECK(shape.kind == CAROUSEL_BLOCK_QUEUE && shape.count == 4 && shape.each == 16 &&
          strcmp(shape.pool, "frames") == 0);
    OK(carousel_space_find(a.space, "tasks", &shape));
    CHECK(shape.kind == CAROUSEL_WORK_QUEUE && shape.count == 8 && shape.each == 4 &&
          shape.max_attempts == 2);
    OK(carousel_space_find(a.space, "frames", &shape));
    CHECK(shape.kind == CAROUSEL_POOL && shape.count == pool_bytes && shape.each == unit &&
          shape.memory == CAROUSEL_HOST && shape.pool[0] == 0);
    STATUS(CAROUSEL_NOT_HELD, carousel_space_find(a.space, "nothing", &shape));
    carousel_space_info info = {.size = sizeof info};
    OK(carousel_space_get_info(a.space, &info));
    CHECK(info.is_held == 1 && info.epoch > 0 && info.gpu_ordinal == -1 && info.bytes == 4u << 20);
    close_all(a);
}

/* A client that closes its handles is not reported; a death while the holder is replaced is reported once. */
static void test_deaths(void) {
    struct all a = open_all();
    carousel_death_watch *deaths, *none;
    carousel_death death = {.size = sizeof death};
    OK(carousel_space_watch_deaths(a.space, &deaths));
    carousel_space* other;
    OK(carousel_space_open("c", NULL, &other));
    OK(carousel_space_close(other));
    const char* const argv[] = {program, "peer", NULL};
    OK(carousel_queue_push(a.samples, &(struct sample){1, 0.5}, 0));
    OK(carousel_work_queue_submit(a.tasks, &(uint32_t){40}, 0, NULL));
    struct process peer = start(argv);
    wait_for_output(peer);
    kill_process(holder);
    kill_process(peer);
    STATUS(CAROUSEL_TIMED_OUT, carousel_death_watch_next(deaths, SECOND / 10, &death));
    STATUS(CAROUSEL_NO_HOLDER, carousel_space_watch_deaths(a.space, &none));
    int calls = 0;
    carousel_set_wait_check(end_after, &calls);
    STATUS(CAROUSEL_INTERRUPTED, carousel_death_watch_next(deaths, CAROUSEL_NO_LIMIT, &death));
    carousel_set_wait_check(NULL, NULL);
    start_holder();
    carousel_death unsized = {0};
    STATUS(CAROUSEL_INVALID_ARGUMENT, carousel_death_watch_next(deaths, LONG, &unsized)); /* takes no death */
    OK(carousel_death_watch_next(deaths, LONG, &death));
    CHECK(death.pid == peer.pid && death.blocks == 1 && death.permits == 1);
    STATUS(CAROUSEL_TIMED_OUT, carousel_death_watch_next(deaths, SECOND / 20, &death));
    OK(carousel_death_watch_close(deaths));
    close_all(a);
}

/* A forked child can't use its parent's handles, does not end them, and may open the space itself. */
static void test_fork(void) {
    struct all a = open_all();
    carousel_block* block;
    carousel_permit* permit;
    OK(carousel_pool_allocate(a.frames, unit, 0, &block));
    OK(carousel_semaphore_acquire(a.turn, 0, &permit));
    memset(carousel_block_data(block), 0x3C, unit);
    const pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        uint64_t number;
        carousel_block* other;
        STATUS(CAROUSEL_FORKED, carousel_queue_pop(a.empty, &number, 0));
        STATUS(CAROUSEL_FORKED, carousel_pool_allocate(a.frames, unit, 0, &other));
        STATUS(CAROUSEL_FORKED, carousel_block_free(block));
        STATUS(CAROUSEL_FORKED, carousel_permit_release(permit));
        STATUS(CAROUSEL_FORKED, carousel_space_close(a.space));
        CHECK(carousel_block_data(block) == NULL);
        struct all own = open_all();
        STATUS(CAROUSEL_TIMED_OUT, carousel_semaphore_acquire(own.turn, 0, &permit));
        OK(carousel_pool_allocate(own.frames, unit, LONG, &other));
        OK(carousel_block_free(other));
        close_all(own);
        exit(0);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
    CHECK(((const unsigned char*)carousel_block_data(block))[unit - 1] == 0x3C);
    CHECK(pool_state(a.frames).blocks == 1);
    OK(carousel_permit_release(permit));
    OK(carousel_block_free(block));
    CHECK(pool_state(a.frames).free_bytes == pool_bytes);
    close_all(a);
}

int main(int argc, char** argv) {
    static const struct {
        const char* name;
        void (*run)(void);
    } cases[] = {{"kill", test_kill}, {"waits", test_waits},   {"arguments", test_arguments},
                 {"full", test_full}, {"deaths", test_deaths}, {"fork", test_fork}};
    program = argv[0];
    if (argc == 2 && strcmp(argv[1], "peer") == 0) return run_peer();
    if (argc != 3) return 2;
    char folder[] = "/tmp/carousel-c-XXXXXX";
    CHECK(mkdtemp(folder) != NULL && setenv("XDG_RUNTIME_DIR", folder, 1) == 0);
    holder_program = argv[1];
    start_holder();
    int found = 0;
    for (size_t k = 0; k < sizeof cases / sizeof *cases; ++k)
        if (strcmp(cases[k].name, argv[2]) == 0) cases[k].run(), ++found;
    CHECK(found == 1);
    kill_process(holder);
    char remove[80];
    snprintf(remove, sizeof remove, "rm -rf %s", folder);
    CHECK(system(remove) == 0);
    return 0;
}
