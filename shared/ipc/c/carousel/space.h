/* Memory pools, semaphores, queues and work queues between processes, for C and for every language that can
 * call C. Library: libcarousel-space.so.0 (pkg-config carousel-space; in CMake carousel::space).
 * <carousel/ipc.hpp> is the C++ interface to the same primitives: programs of both share one space.
 *
 *   carousel_space* space;
 *   carousel_pool* pool;
 *   carousel_block* block;
 *   if (carousel_space_open("lab", NULL, &space) != CAROUSEL_OK) puts(carousel_last_error());
 *   carousel_pool_open(space, "frames", 64 << 20, 65536, CAROUSEL_HOST, &pool);
 *   carousel_pool_allocate(pool, 8 << 20, 50000000, &block);    at most 50 ms
 *   ... carousel_block_data(block) ...
 *   carousel_block_free(block);
 *
 * A space is a shared-memory segment with its primitives. The program `carousel hold NAME` holds it. The first
 * request for the name of a primitive determines its shape; a later request with another shape is refused.
 *
 * Errors. Each function returns a carousel_status; results are stored through pointers, which are not written
 * to if the function fails. carousel_last_error() returns the text of the calling thread's last failure. Null
 * pointers and handles of another kind are refused with CAROUSEL_INVALID_ARGUMENT.
 *
 * Handles. A handle is valid until the function that ends it: ..._close, ..._free, ..._release, ..._commit,
 * ..._return, ..._fail, ..._send (after CAROUSEL_OK). Its use after that is undefined. The functions that only
 * end a handle ignore null. Handles may be closed in any order: each handle keeps its space open, so the process
 * is detached when the last handle of a space has ended.
 *
 * Ownership and crashes. A block, permit, lease or task belongs to the calling process until it is ended. If
 * the process dies, the object is recovered exactly once, after the fence (the moment from which the process
 * and its GPU work can no longer write): blocks and permits become free, leased elements are delivered again,
 * claimed tasks wait again with one more attempt counted, and popped elements are counted as lost. Until then
 * no other process gets the object. A process that exits without closing its handles is treated in the same
 * way. The death of the holder stops no client: see <carousel/ipc.hpp>.
 *
 * Time. A timeout is a number of nanoseconds. 0 does not wait; CAROUSEL_NO_LIMIT waits until the call
 * succeeds or the thread's wait check ends the wait. Other negative values are refused. If the time expires,
 * the call returns CAROUSEL_TIMED_OUT and changes nothing; with a timeout above 0 the error text names the
 * processes that hold the objects.
 *
 * Threads. All functions may be called by any thread, several threads may use one handle of a space, pool,
 * semaphore or queue at a time, and a handle of a block, permit, lease, task, share or death watch may be
 * used by one thread at a time. Data that a process has written before push, send, submit, commit or release
 * is visible to the process that gets the element, block, task or permit. A thread must not be cancelled
 * (pthread_cancel) during a call.
 *
 * fork. A forked child can't use its parent's handles: every function refuses them with CAROUSEL_FORKED and
 * has no effect, also the functions that end a handle. The child may open the space itself. A child that
 * calls exec needs nothing.
 *
 * Versions. Functions and the fields of structures are only added within one major version of the library;
 * exported symbols carry the version CAROUSEL_SPACE_0. A structure that the caller passes begins with its
 * size (sizeof), so that a program which was compiled with an older header works with a newer library.
 */
#ifndef CAROUSEL_SPACE_H
#define CAROUSEL_SPACE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define CAROUSEL_API __attribute__((visibility("default")))
#define CAROUSEL_USE_RESULT __attribute__((warn_unused_result))
#else
#define CAROUSEL_API
#define CAROUSEL_USE_RESULT
#endif

/** A timeout without a limit. */
#define CAROUSEL_NO_LIMIT INT64_C(-1)

/** The result of a call. */
typedef enum carousel_status {
    CAROUSEL_OK = 0,
    CAROUSEL_TIMED_OUT = 1,        /**< the time expired; with a timeout of 0: not possible at once */
    CAROUSEL_INTERRUPTED = 2,      /**< the thread's wait check ended the wait; nothing has changed */
    CAROUSEL_INVALID_ARGUMENT = 3, /**< a null pointer, a handle of another kind, or a value out of range */
    CAROUSEL_NO_HOLDER = 4,        /**< no process holds the space: start `carousel hold NAME` */
    CAROUSEL_REFUSED = 5,          /**< a name or shape is invalid, differs from the existing one, or has no room */
    CAROUSEL_NOT_HELD = 6,         /**< the object does not exist or does not belong to its owner any more */
    CAROUSEL_FORKED = 7,           /**< the handle belongs to the parent of this process */
    CAROUSEL_SHARED_MEMORY = 8,    /**< shared memory or a socket can't be used, or the space is damaged */
    CAROUSEL_DEVICE = 9,           /**< a GPU is missing, or a CUDA call has failed */
    CAROUSEL_OUT_OF_MEMORY = 10,   /**< memory, threads or descriptors are exhausted */
    CAROUSEL_INTERNAL = 11         /**< a bug in the library: please report the text */
} carousel_status;

/** Where the memory of a pool is. */
typedef enum carousel_memory {
    CAROUSEL_HOST = 0, /**< in the segment */
    CAROUSEL_GPU = 1   /**< in the GPU memory of a space that is held with --device */
} carousel_memory;

/** The state of a task. */
typedef enum carousel_task_state {
    CAROUSEL_TASK_WAITING = 0,
    CAROUSEL_TASK_CLAIMED = 1,
    CAROUSEL_TASK_DEAD_LETTER = 2,
    CAROUSEL_TASK_OVER = 3 /**< committed, or removed as a dead letter */
} carousel_task_state;

typedef struct carousel_space carousel_space;             /**< an open space */
typedef struct carousel_semaphore carousel_semaphore;     /**< permits, granted in the order of requests */
typedef struct carousel_permit carousel_permit;           /**< a permit of this process */
typedef struct carousel_pool carousel_pool;               /**< memory that is allocated in blocks */
typedef struct carousel_block carousel_block;             /**< a block of this process */
typedef struct carousel_share carousel_share;             /**< a read-only view of another process's block */
typedef struct carousel_queue carousel_queue;             /**< elements from any process to any process */
typedef struct carousel_lease carousel_lease;             /**< a leased element */
typedef struct carousel_block_queue carousel_block_queue; /**< a queue that carries blocks of a pool */
typedef struct carousel_work_queue carousel_work_queue;   /**< tasks, each of which is committed once */
typedef struct carousel_task carousel_task;               /**< a task claimed by this process */
typedef struct carousel_death_watch carousel_death_watch; /**< reports of deaths of other clients */

/* ---- library ---- */

/** Returns the version of the library, as "0.2.0". */
CAROUSEL_API const char* carousel_space_library_version(void);
/** Returns the text of this thread's last failure, which is valid until the thread's next call; "" if no call
 * has failed. A call that succeeds does not change the text. */
CAROUSEL_API const char* carousel_last_error(void);
/** Returns the name of a status, as "CAROUSEL_TIMED_OUT"; "?" for another number. */
CAROUSEL_API const char* carousel_status_name(carousel_status status);
/** Sets the wait check of the calling thread; null removes it. The library calls `check(with)` on this thread
 * before each sleep of its waits, which is at least every 100 ms and may be at once. If it returns a value
 * other than 0, the wait ends with CAROUSEL_INTERRUPTED. It must not call this library. Interpreters use it
 * to handle signals. */
CAROUSEL_API void carousel_set_wait_check(int (*check)(void*), void* with);

/* ---- space ---- */

/** Options of carousel_space_open(). */
typedef struct carousel_space_options {
    size_t size;     /**< sizeof(carousel_space_options) */
    int64_t wait_ns; /**< how long to wait for a holder, and for the creation of a primitive; default 5 s */
} carousel_space_options;

/** About an open space. */
typedef struct carousel_space_info {
    size_t size;            /**< sizeof(carousel_space_info) */
    uint64_t bytes;         /**< of the segment */
    uint64_t gpu_bytes;     /**< of the GPU memory; 0: the space has none */
    uint32_t epoch;         /**< number of this process's attachment */
    int32_t is_held;        /**< 0: the space has no holder; open primitives keep working */
    int32_t gpu_ordinal;    /**< GPU for which this process has mapped the GPU memory; -1: not mapped */
    uint32_t reserved;
} carousel_space_info;

/** The kinds of primitives. */
typedef enum carousel_kind {
    CAROUSEL_SEMAPHORE = 1,
    CAROUSEL_QUEUE = 2,
    CAROUSEL_BLOCK_QUEUE = 3,
    CAROUSEL_WORK_QUEUE = 4,
    CAROUSEL_POOL = 5,
    CAROUSEL_OTHER = 6 /**< in kernels only: <carousel/ipc_cuda.cuh> */
} carousel_kind;

/** The shape of a primitive. */
typedef struct carousel_shape {
    size_t size;           /**< sizeof(carousel_shape) */
    uint64_t count;        /**< permits; elements; blocks; tasks; bytes of a pool */
    uint64_t each;         /**< 0; bytes of an element; of a description, rounded up to 8; of a task; of a unit */
    uint32_t max_attempts; /**< of a work queue; otherwise 0 */
    int32_t kind;          /**< a carousel_kind */
    int32_t memory;        /**< of a pool, a carousel_memory */
    uint32_t reserved;
    char pool[48];         /**< of a queue of blocks, the name of its pool; otherwise "" */
} carousel_shape;

/** Attaches this process to a space. `options`: null for the defaults. The process may attach several times;
 * each time it is another client. CAROUSEL_NO_HOLDER if no process holds the space within wait_ns. */
CAROUSEL_API CAROUSEL_USE_RESULT carousel_status carousel_space_open(const char* name,
    const carousel_space_options* options, carousel_space** space);
/** Ends the handle. The process is detached when the last handle of this space has ended. */
CAROUSEL_API carousel_status carousel_space_close(carousel_space* space);
/** Stores the present state of the space; info->size has to be set. */
CAROUSEL_API CAROUSEL_USE_RESULT carousel_status carousel_space_get_info(carousel_space* space,
    carousel_space_info* info);
/** Stores the shape of an existing primitive; shape->size has to be set. CAROUSEL_NOT_HELD, at once, if the space
 * has no primitive of that name. */
CAROUSEL_API CAROUSEL_USE_RESULT carousel_status carousel_space_find(carousel_space* space, const char* name,
    carousel_shape* shape);
/** Maps the GPU memory of the space for GPU `ordinal` (this process's numbering) in its primary context, which
 * is created if necessary. Pools of CAROUSEL_GPU need it. A second call for the same GPU does nothing. The
 * memory is unmapped when the space is detached, which waits for this process's work on that GPU. */
CAROUSEL_API CAROUSEL_USE_RESULT carousel_status carousel_space_map_gpu(carousel_space* space, int32_t ordinal);

/* ---- semaphore ---- */

/** The state of a semaphore, at some instant. */
typedef struct carousel_semaphore_state {
    size_t size;      /**< sizeof(carousel_semaphore_state) */
    uint32_t free;    /**< permits */
    uint32_t waiting; /**< processes and threads in the line */
} carousel_semaphore_state;

/** Opens or creates a semaphore with `permits` permits (1 to 4096). */
CAROUSEL_API CAROUSEL_USE_RESULT carousel_status carousel_semaphore_open(carousel_space* space, const char* name,
    uint32_t permits, carousel_semaphore** semaphore);
/** Ends the handle; permits remain valid. */
CAROUSEL_API carousel_status carousel_semaphore_close(carousel_semaphore* semaphore);
/** Waits for a permit, in the order of the line. */
CAROUSEL_API CAROUSEL_USE_RESULT carousel_status carousel_semaphore_acquire(carousel_semaphore* semaphore,
    int64_t timeout_ns, carousel_permit** permit);
/** Stores the state; state->size has to be set. */
CAROUSEL_API CAROUSEL_USE_RESULT carousel_status carousel_semaphore_get_state(carousel_semaphore* semaphore,
    carousel_semaphore_state* state);
/** Gives the permit back and ends its handle. */
CAROUSEL_API carousel_status carousel_permit_release(carousel_permit* permit);

/* ---- pool ---- */

/** The state of a pool. It is not a snapshot, because other processes change the pool meanwhile. */
typedef struct carousel_pool_state {
    size_t size;                 /**< sizeof(carousel_pool_state) */
    uint64_t bytes;              /**< of the pool */
    uint64_t free_bytes;         /**< not in any block */
    uint64_t largest_free_bytes; /**< the largest block that can be allocated now */
    uint32_t blocks;             /**< owned by processes, also by dead ones before their fence */
    uint32_t in_queues;          /**< blocks carried by queues */
} carousel_pool_state;

/** About a block. */
typedef struct carousel_block_info {
    size_t size;         /**< sizeof(carousel_block_info) */
    void* data;          /**< address in this process; of a GPU pool, a device pointer */
    uint64_t bytes;      /**< whole units, at least the bytes requested */
    uint64_t offset;     /**< from the start of the segment or of the GPU memory: equal in every process */
    int32_t memory;      /**< a carousel_memory */
    int32_t gpu_ordinal; /**< of a GPU pool: the GPU; otherwise -1 */
} carousel_block_info;

/** The name of a block, by which another process can map it read-only. It may be copied as bytes: in an
 * element, a task, or the description of another block. */
typedef struct carousel_share_name {
    uint64_t word[4]; /**< meaning only to the library */
} carousel_share_name;

/** Opens or creates a pool of `bytes` bytes, rounded up to whole units of `unit_bytes`, which is a multiple of
 * 4096. For CAROUSEL_GPU call carousel_space_map_gpu() first. */
CAROUSEL_API CAROUSEL_USE_RESULT carousel_status carousel_pool_open(carousel_space* space, const char* name,
    uint64_t bytes, uint64_t unit_bytes, carousel_memory memory, carousel_pool** pool);
/** Ends the handle; blocks remain valid. */
CAROUSEL_API carousel_status carousel_pool_close(carousel_pool* pool);
/** Waits for a contiguous block of at least `bytes` bytes. Requests are not served in order. The block
 * contains the bytes that its previous owner has left. */
CAROUSEL_API CAROUSEL_USE_RESULT carousel_status carousel_pool_allocate(carousel_pool* pool, uint64_t bytes,
    int64_t timeout_ns, carousel_block** block);
/** Stores the state; state->size has to be set. */
CAROUSEL_API CAROUSEL_USE_RESULT carousel_status carousel_pool_get_state(carousel_pool* pool,
    carousel_pool_state* state);
/** Frees the block and ends its handle. For a block of a GPU pool, first waits until all work that this
 * process has enqueued on that GPU is complete; if that work has failed, returns CAROUSEL_DEVICE: the block
 * then stays owned by this process until it exits. */
CAROUSEL_API carousel_status carousel_block_free(carousel_block* block);
/** Returns the address of the block, or null for an invalid handle. */
CAROUSEL_API void* carousel_block_data(carousel_block* block);
/** Stores information about the block; info->size has to be set. */
CAROUSEL_API CAROUSEL_USE_RESULT carousel_status carousel_block_get_info(carousel_block* block,
    carousel_block_info* info);
/** Stores the name by which other processes of the space can map the block read-only. The block still belongs
 * to this process; the name becomes invalid when the block is freed or sent. */
CAROUSEL_API CAROUSEL_USE_RESULT carousel_status carousel_block_share(carousel_block* block,
    carousel_share_name* name);
/** Maps a shared block read-only. `pool` is the pool of the block. CAROUSEL_NOT_HELD if the block is no longer
 * owned by the process that has shared it. A write to the mapping ends the process that made it (on a GPU: its
 * context; under MPS: every client of the MPS server). The mapping does not keep the block: see
 * carousel_share_check(). */
CAROUSEL_API CAROUSEL_USE_RESULT carousel_status carousel_share_open(carousel_pool* pool,
    const carousel_share_name* name, carousel_share** share);
/** Stores the address and size of the mapping; info->size has to be set. */
CAROUSEL_API CAROUSEL_USE_RESULT carousel_status carousel_share_get_info(carousel_share* share,
    carousel_block_info* info);
/** CAROUSEL_OK if the block still belongs to the process that has shared it: then all that was read before
 * this call is that process's data. CAROUSEL_NOT_HELD if it has been freed, sent, or recovered after a
 * death. */
CAROUSEL_API CAROUSEL_USE_RESULT carousel_status carousel_share_check(carousel_share* share);
/** Unmaps the share. */
CAROUSEL_API carousel_status carousel_share_close(carousel_share* share);

/* ---- queue ---- */

/** The state of a queue, at some instant. */
typedef struct carousel_queue_state {
    size_t size;        /**< sizeof(carousel_queue_state) */
    uint64_t elements;  /**< not taken yet */
    uint64_t lost;      /**< elements that a process had popped when it died */
    uint64_t abandoned; /**< places that a process had claimed and not filled when it died */
} carousel_queue_state;

/** Opens or creates a queue of `elements` elements of `element_bytes` bytes. `type`: the name of the elements'
 * struct, as in C++ without its namespace, or "i", "u", "f" for a signed, unsigned or floating-point number;
 * null: any type of that size. Programs that name different types are refused. */
CAROUSEL_API CAROUSEL_USE_RESULT carousel_status carousel_queue_open(carousel_space* space, const char* name,
    uint32_t elements, uint32_t element_bytes, const char* type, carousel_queue** queue);
/** Ends the handle; leases remain valid. */
CAROUSEL_API carousel_status carousel_queue_close(carousel_queue* queue);
/** Appends a copy of the element_bytes bytes at `element`; waits for room. */
CAROUSEL_API CAROUSEL_USE_RESULT carousel_status carousel_queue_push(carousel_queue* queue, const void* element,
    int64_t timeout_ns);
/** Removes the first element and copies it to `element`. An element that this process has popped is lost if
 * the process dies; carousel_queue_lease() avoids that. */
CAROUSEL_API CAROUSEL_USE_RESULT carousel_status carousel_queue_pop(carousel_queue* queue, void* element,
    int64_t timeout_ns);
/** Leases the first element and copies it to `element`. */
CAROUSEL_API CAROUSEL_USE_RESULT carousel_status carousel_queue_lease(carousel_queue* queue, void* element,
    int64_t timeout_ns, carousel_lease** lease);
/** Removes the leased element from the queue and ends the handle. */
CAROUSEL_API carousel_status carousel_lease_commit(carousel_lease* lease);
/** Makes the leased element available again to any process and ends the handle. */
CAROUSEL_API carousel_status carousel_lease_return(carousel_lease* lease);
/** Stores the state; state->size has to be set. */
CAROUSEL_API CAROUSEL_USE_RESULT carousel_status carousel_queue_get_state(carousel_queue* queue,
    carousel_queue_state* state);

/* ---- queue of blocks ---- */

/** Opens or creates a queue of `blocks` blocks of `pool`. Each block is sent with a description of
 * `about_bytes` bytes, which may be 0. `type`: as in carousel_queue_open(). */
CAROUSEL_API CAROUSEL_USE_RESULT carousel_status carousel_block_queue_open(carousel_space* space,
    const char* name, carousel_pool* pool, uint32_t blocks, uint32_t about_bytes, const char* type,
    carousel_block_queue** queue);
/** Ends the handle. */
CAROUSEL_API carousel_status carousel_block_queue_close(carousel_block_queue* queue);
/** Sends the block; waits for room. After CAROUSEL_OK the handle of the block has ended; otherwise the block
 * still belongs to this process. At every instant the block has one owner: this process, the queue or the
 * receiver, also if one of them dies. For a block of a GPU pool, first waits as carousel_block_free(). */
CAROUSEL_API CAROUSEL_USE_RESULT carousel_status carousel_block_queue_send(carousel_block_queue* queue,
    carousel_block* block, const void* about, int64_t timeout_ns);
/** Waits for a block, which this process then owns, and copies its description to `about`. */
CAROUSEL_API CAROUSEL_USE_RESULT carousel_status carousel_block_queue_receive(carousel_block_queue* queue,
    void* about, int64_t timeout_ns, carousel_block** block);
/** Stores the state; state->size has to be set. */
CAROUSEL_API CAROUSEL_USE_RESULT carousel_status carousel_block_queue_get_state(carousel_block_queue* queue,
    carousel_queue_state* state);

/* ---- work queue ---- */

/** Identifies a task; never used again in the same work queue. */
typedef struct carousel_task_id {
    uint32_t place;      /**< in the work queue */
    uint32_t generation; /**< number of the task at this place */
} carousel_task_id;

/** About a claimed task. */
typedef struct carousel_task_info {
    size_t size;              /**< sizeof(carousel_task_info) */
    carousel_task_id id;      /**< identifies the task in every process */
    uint32_t failed_attempts; /**< before this one */
    uint32_t reserved;
} carousel_task_info;

/** The state of a work queue, at some instant. */
typedef struct carousel_work_queue_state {
    size_t size;           /**< sizeof(carousel_work_queue_state) */
    uint32_t waiting;      /**< tasks */
    uint32_t dead_letters; /**< tasks that failed max_attempts times */
} carousel_work_queue_state;

/** Opens or creates a work queue of `tasks` tasks of `task_bytes` bytes. A task that fails `max_attempts`
 * times (1 to 15) becomes a dead letter. `type`: as in carousel_queue_open(). */
CAROUSEL_API CAROUSEL_USE_RESULT carousel_status carousel_work_queue_open(carousel_space* space,
    const char* name, uint32_t tasks, uint32_t task_bytes, uint32_t max_attempts, const char* type,
    carousel_work_queue** queue);
/** Ends the handle; claimed tasks remain valid. */
CAROUSEL_API carousel_status carousel_work_queue_close(carousel_work_queue* queue);
/** Adds a copy of the task; waits for a free place. `id` may be null. */
CAROUSEL_API CAROUSEL_USE_RESULT carousel_status carousel_work_queue_submit(carousel_work_queue* queue,
    const void* task, int64_t timeout_ns, carousel_task_id* id);
/** Claims a waiting task and copies it to `task`. A task's effects outside the queue happen at least once, so
 * they must be idempotent per id. */
CAROUSEL_API CAROUSEL_USE_RESULT carousel_status carousel_work_queue_claim(carousel_work_queue* queue,
    void* task, int64_t timeout_ns, carousel_task** claimed);
/** Removes a dead letter and copies it to `task`. CAROUSEL_TIMED_OUT, at once, if there is none. */
CAROUSEL_API CAROUSEL_USE_RESULT carousel_status carousel_work_queue_take_dead_letter(carousel_work_queue* queue,
    void* task);
/** Stores the present state of a task. */
CAROUSEL_API CAROUSEL_USE_RESULT carousel_status carousel_work_queue_get_task_state(carousel_work_queue* queue,
    carousel_task_id id, carousel_task_state* state);
/** Stores the state; state->size has to be set. */
CAROUSEL_API CAROUSEL_USE_RESULT carousel_status carousel_work_queue_get_state(carousel_work_queue* queue,
    carousel_work_queue_state* state);
/** Stores information about a claimed task; info->size has to be set. */
CAROUSEL_API CAROUSEL_USE_RESULT carousel_status carousel_task_get_info(carousel_task* task,
    carousel_task_info* info);
/** Completes the task and ends the handle. */
CAROUSEL_API carousel_status carousel_task_commit(carousel_task* task);
/** Counts a failed attempt and ends the handle: the task waits again, or becomes a dead letter. */
CAROUSEL_API carousel_status carousel_task_fail(carousel_task* task);

/* ---- deaths ---- */

/** A client that has died: its process was killed, or has exited without closing its handles. */
typedef struct carousel_death {
    size_t size;          /**< sizeof(carousel_death) */
    int32_t pid;          /**< of its process */
    uint32_t epoch;       /**< of its attachment */
    uint64_t blocks;      /**< blocks that it owned. They are free again; one that it was sending is delivered. */
    uint64_t block_bytes; /**< of these blocks */
    uint64_t permits;     /**< permits that it held */
    uint64_t leases;      /**< elements that it had leased */
    uint64_t tasks;       /**< tasks that it had claimed */
    uint32_t listed;      /**< blocks that carousel_death_watch_get_block() returns: at most 256 */
    uint32_t reserved;
} carousel_death;

/** A block that a client owned when it died. */
typedef struct carousel_owned_block {
    size_t size;     /**< sizeof(carousel_owned_block) */
    uint64_t offset; /**< as carousel_block_info.offset */
    uint64_t bytes;  /**< of the block */
    char pool[48];   /**< name of its pool */
} carousel_owned_block;

/** Watches the deaths of the space's clients from now on. CAROUSEL_NO_HOLDER if the space has no holder. */
CAROUSEL_API CAROUSEL_USE_RESULT carousel_status carousel_space_watch_deaths(carousel_space* space,
    carousel_death_watch** watch);
/** Waits for the next death; death->size has to be set. It is reported after the fence and the repair, once, also
 * if the holder is replaced meanwhile. While the space has no holder, nothing is reported. If a holder dies during
 * the repair, the report of the next one contains only what was not repaired yet. */
CAROUSEL_API CAROUSEL_USE_RESULT carousel_status carousel_death_watch_next(carousel_death_watch* watch,
    int64_t timeout_ns, carousel_death* death);
/** Stores a block of the death that carousel_death_watch_next() has returned last; block->size has to be set. */
CAROUSEL_API CAROUSEL_USE_RESULT carousel_status carousel_death_watch_get_block(carousel_death_watch* watch,
    uint32_t index, carousel_owned_block* block);
/** Ends the handle. */
CAROUSEL_API carousel_status carousel_death_watch_close(carousel_death_watch* watch);

#ifdef __cplusplus
}
#endif

#endif
