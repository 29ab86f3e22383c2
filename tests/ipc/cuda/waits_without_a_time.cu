// Not a program: the compiler must refuse each of these, with a message that names the alternative
// (CMakeLists.txt).
#include "ipc/cuda/carousel/ipc_cuda.cuh"

using namespace carousel::ipc;

__global__ void waits(queue_view<int> q, work_queue_view<int> w) {
    int v = 0;
    queue_lease l;
    claimed_task c;
    (void)q.push(v);
    (void)q.pop(v);
    (void)q.lease(v, l);
    (void)w.claim(v, c);
}
