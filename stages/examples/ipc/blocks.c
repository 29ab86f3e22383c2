/* As pool.cpp, in C: blocks send NUMBER | blocks take NUMBER. Programs in both languages share the pool. */
#include <carousel/space.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct picture { /* travels with a block */
    unsigned width, height, number;
};

/* Ends the program if a call has failed. What this process owns is recovered. */
static void check(carousel_status status) {
    if (status == CAROUSEL_OK) return;
    fprintf(stderr, "%s: %s\n", carousel_status_name(status), carousel_last_error());
    exit(1);
}

int main(int argc, char** argv) {
    const int64_t limit = INT64_C(10000000000); /* 10 s */
    if (argc < 3) return 2;
    const int send = strcmp(argv[1], "send") == 0;
    const unsigned number = (unsigned)atoi(argv[2]);
    carousel_space* lab;
    carousel_pool* pool;
    carousel_block_queue* travelling;
    check(carousel_space_open("lab", NULL, &lab));
    check(carousel_pool_open(lab, "pictures", 8 << 20, 65536, CAROUSEL_HOST, &pool));
    check(carousel_block_queue_open(lab, "travelling", pool, 4, sizeof(struct picture), "picture", &travelling));
    for (unsigned k = 0; k < number; ++k) {
        struct picture about = {320, 200, k};
        carousel_block* block;
        if (send) {
            check(carousel_pool_allocate(pool, 4 * about.width * about.height, limit, &block));
            memset(carousel_block_data(block), (int)(k % 256), 4 * about.width * about.height);
            check(carousel_block_queue_send(travelling, block, &about, limit));
            continue;
        }
        check(carousel_block_queue_receive(travelling, &about, limit, &block));
        printf("picture %u, %ux%u, begins with %u\n", about.number, about.width, about.height,
               *(const unsigned char*)carousel_block_data(block));
        check(carousel_block_free(block));
    }
    check(carousel_block_queue_close(travelling));
    check(carousel_pool_close(pool));
    check(carousel_space_close(lab));
    return 0;
}
