/* <carousel/space.h> with GPU memory, between two processes: space_gpu_test CAROUSEL, the program `carousel`. The
 * other process is this program again: space_gpu_test peer. Exit code 77: there is no GPU. */
#define _GNU_SOURCE
#include <cuda_runtime_api.h>
#include <unistd.h>

#include "../check.h"

enum { unit = 1 << 16, pool_bytes = 64 * unit };

#define CUDA(call)                                                                                            \
    do {                                                                                                      \
        const cudaError_t status_ = (call);                                                                   \
        if (status_ != cudaSuccess) {                                                                         \
            fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #call, cudaGetErrorName(status_));         \
            exit(1);                                                                                          \
        }                                                                                                     \
    } while (0)

struct all {
    carousel_space* space;
    carousel_pool* pool;
    carousel_block_queue* travelling;
    carousel_queue* names;
};

static struct all open_all(void) {
    struct all a;
    const carousel_space_options options = {sizeof options, LONG};
    OK(carousel_space_open("g", &options, &a.space));
    STATUS(CAROUSEL_REFUSED, carousel_pool_open(a.space, "frames", pool_bytes, unit, CAROUSEL_GPU, &a.pool));
    OK(carousel_space_map_gpu(a.space, 0));
    OK(carousel_space_map_gpu(a.space, 0));
    OK(carousel_pool_open(a.space, "frames", pool_bytes, unit, CAROUSEL_GPU, &a.pool));
    OK(carousel_block_queue_open(a.space, "travelling", a.pool, 4, 0, NULL, &a.travelling));
    OK(carousel_queue_open(a.space, "names", 4, sizeof(carousel_share_name), NULL, &a.names));
    return a;
}

static void check_bytes(const void* from, size_t bytes, unsigned char expected) {
    unsigned char* copy = malloc(bytes);
    CHECK(copy != NULL);
    CUDA(cudaMemcpy(copy, from, bytes, cudaMemcpyDeviceToHost));
    for (size_t k = 0; k < bytes; ++k) CHECK(copy[k] == expected);
    free(copy);
}

/* Sends a block whose content is still being written, keeps another one, and waits to be killed. */
static int run_peer(void) {
    struct all a = open_all();
    carousel_block *kept, *sent;
    carousel_share_name name;
    OK(carousel_pool_allocate(a.pool, 4 * unit, LONG, &kept));
    OK(carousel_pool_allocate(a.pool, unit, LONG, &sent));
    CUDA(cudaMemsetAsync(carousel_block_data(sent), 0x21, unit, 0));
    OK(carousel_block_queue_send(a.travelling, sent, NULL, LONG));
    CUDA(cudaMemset(carousel_block_data(kept), 0x5A, 4 * unit));
    CUDA(cudaDeviceSynchronize());
    OK(carousel_block_share(kept, &name));
    OK(carousel_queue_push(a.names, &name, LONG));
    CHECK(write(STDOUT_FILENO, "r", 1) == 1);
    for (;;) CUDA(cudaMemsetAsync(carousel_block_data(kept), 0x5A, 4 * unit, 0)); /* work is under way */
}

int main(int argc, char** argv) {
    if (argc != 2) return 2;
    if (strcmp(argv[1], "peer") == 0) return run_peer();
    int gpus = 0;
    if (cudaGetDeviceCount(&gpus) != cudaSuccess || gpus == 0) {
        fprintf(stderr, "no GPU: skipped\n");
        return 77;
    }
    char folder[] = "/tmp/carousel-c-XXXXXX";
    CHECK(mkdtemp(folder) != NULL && setenv("XDG_RUNTIME_DIR", folder, 1) == 0);
    const char* const hold[] = {argv[1], "hold", "g", "--device", "cuda:0", "--device-size", "64M", NULL};
    const char* const other[] = {argv[0], "peer", NULL};
    struct process holder = start(hold), peer = start(other);
    struct all a = open_all();
    wait_for_output(peer);

    carousel_space_info about = {.size = sizeof about};
    OK(carousel_space_get_info(a.space, &about));
    CHECK(about.gpu_ordinal == 0 && about.gpu_bytes >= 64u << 20);
    carousel_block* block;
    carousel_block_info info = {.size = sizeof info};
    OK(carousel_block_queue_receive(a.travelling, NULL, LONG, &block));
    OK(carousel_block_get_info(block, &info));
    CHECK(info.memory == CAROUSEL_GPU && info.gpu_ordinal == 0 && info.bytes == unit);
    check_bytes(info.data, unit, 0x21);
    OK(carousel_block_free(block));

    carousel_share_name name;
    carousel_share* share;
    OK(carousel_queue_pop(a.names, &name, LONG));
    OK(carousel_share_open(a.pool, &name, &share));
    OK(carousel_share_get_info(share, &info));
    check_bytes(info.data, 4 * unit, 0x5A);
    CHECK(cudaMemset(info.data, 0, unit) == cudaErrorInvalidValue); /* refused, and the context is intact */
    (void)cudaGetLastError();
    OK(carousel_share_check(share));

    const int64_t killed = now_ns();
    kill_process(peer);
    OK(carousel_pool_allocate(a.pool, pool_bytes, LONG, &block)); /* the whole pool, after the fence */
    printf("the blocks of a killed process were available after %.1f ms\n", (double)(now_ns() - killed) / 1e6);
    STATUS(CAROUSEL_NOT_HELD, carousel_share_check(share));
    OK(carousel_share_close(share));
    CUDA(cudaMemset(carousel_block_data(block), 1, pool_bytes));
    check_bytes(carousel_block_data(block), pool_bytes, 1);
    OK(carousel_block_free(block));
    OK(carousel_queue_close(a.names));
    OK(carousel_block_queue_close(a.travelling));
    OK(carousel_pool_close(a.pool));
    OK(carousel_space_close(a.space));
    kill_process(holder);
    char remove[80];
    snprintf(remove, sizeof remove, "rm -rf %s", folder);
    CHECK(system(remove) == 0);
    return 0;
}
