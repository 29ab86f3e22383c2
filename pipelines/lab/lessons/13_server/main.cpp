// An inference server, in which workers answer requests with one set of weights. First each worker gets its
// requests from its own pipe, then all workers claim requests from a work queue of a space. One worker is
// killed under load, and a standby replaces it. Usage: carousel-lab-server SPACE (the name given to `carousel
// hold`)
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <carousel/ipc.hpp>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include "../program.hpp"

namespace {

using lesson::end_of;
using lesson::now_us;
using lesson::start;
using std::chrono::seconds;
constexpr unsigned workers = 4, requests = 400, load = 2000, window = 64, under_way = 100, layer = 1 << 16,
                   layers = 64, dies_after = 5;
constexpr size_t weight_bytes = size_t{layer} * layers * 4;  // 16 MiB
constexpr rlimit no_core{0, 0};
std::string space;

struct request {
    unsigned number;
    double requested_us;
};
struct answer {
    unsigned number, value;
    double took_us;
};
struct board {
    std::atomic<unsigned> stop, takes_over;
    std::atomic<double> killed_us, ready_us;
    std::atomic<unsigned> ready, pss_kib, sum, served, taken;
};
board* shared;

unsigned* map(int fd, int protection) {
    void* at = mmap(nullptr, weight_bytes, protection, MAP_SHARED, fd, 0);
    if (at == MAP_FAILED) _exit(9);
    return static_cast<unsigned*>(at);
}
int make_weights() {
    const int fd = memfd_create("lesson-weights", MFD_ALLOW_SEALING);
    if (fd < 0 || ftruncate(fd, weight_bytes) != 0) _exit(9);
    unsigned* const w = map(fd, PROT_READ | PROT_WRITE);
    for (size_t k = 0; k < weight_bytes / 4; ++k) w[k] = static_cast<unsigned>(k * 2654435761U);
    munmap(w, weight_bytes);
    fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE);  // no writable maps
    return fd;
}
/// The model: evaluates the layer that `number` selects; the weights of its terms also depend on `number`.
unsigned infer(const unsigned* weights, unsigned number) {
    const unsigned* const w = weights + size_t{number % layers} * layer;
    unsigned y = 0;
    for (unsigned k = 0; k < layer; ++k) y += w[k] * (number + k);
    return y;
}
/// Returns this process's memory in KiB; a page that n processes map counts as 1/n of a page (PSS).
unsigned own_kib() {
    std::ifstream in("/proc/self/smaps_rollup");
    for (std::string line; std::getline(in, line);)
        if (line.starts_with("Pss:"))
            return static_cast<unsigned>(std::strtoul(line.c_str() + 4, nullptr, 10));
    return 0;
}

/// A barrier of all workers.
void meet(std::atomic<unsigned>& here) {
    for (++here; here < workers;) usleep(500);
}
/// Starts four workers. Either each worker has its own copy of the weights, or all workers share one set.
/// Returns the memory of all four workers together in MiB.
double memory(const char* name, int weights, bool copies) {
    shared->ready = shared->stop = shared->pss_kib = 0;
    pid_t pids[workers];
    for (pid_t& pid : pids)
        pid = start([&] {
            const double begin = now_us();
            const unsigned* w = map(weights, PROT_READ);
            std::vector<unsigned> copy;
            if (copies) {
                copy.assign(w, w + weight_bytes / 4);
                munmap(const_cast<unsigned*>(w), weight_bytes);
                w = copy.data();
            }
            unsigned y = infer(w, 0);
            // every worker overwrites this, so the last worker's value remains
            shared->ready_us = now_us() - begin;
            for (unsigned k = 1; k < layers; ++k) y += infer(w, k);
            shared->sum = y;
            meet(shared->ready);
            shared->pss_kib += own_kib();  // all workers have touched all weights now
            meet(shared->stop);
            return 0;
        });
    for (const pid_t pid : pids) (void)end_of(pid);
    const double mib = shared->pss_kib / 1024.0;
    std::printf("figure %s.mib %.1f\nfigure %s.first_us %.0f\n", name, mib, name, shared->ready_us.load());
    return mib;
}

/// Like many servers: one pipe of requests per worker, filled round-robin. One worker is killed in its sixth
/// request.
void dealt(int weights) {
    int ways[workers][2], back[2];
    pid_t pids[workers];
    if (pipe(back) != 0) _exit(9);
    for (auto& way : ways)
        if (pipe(way) != 0) _exit(9);
    for (unsigned k = 0; k < requests; ++k) {
        const request r{k, now_us()};
        if (write(ways[k % workers][1], &r, sizeof r) != sizeof r) _exit(9);
    }
    for (unsigned w = 0; w < workers; ++w)
        pids[w] = start([&, w] {
            for (auto& way : ways) close(way[1]);
            const unsigned* const model = map(weights, PROT_READ);
            unsigned done = 0;
            for (request r; read(ways[w][0], &r, sizeof r) == sizeof r; ++done) {
                const answer a{r.number, infer(model, r.number), now_us() - r.requested_us};
                if (w == 0 && done == dies_after) return kill(getpid(), SIGKILL);
                if (write(back[1], &a, sizeof a) != sizeof a) return 1;
            }
            return 0;
        });
    for (auto& way : ways) close(way[0]), close(way[1]);
    close(back[1]);
    unsigned answers = 0;
    for (answer a; read(back[0], &a, sizeof a) == sizeof a;) ++answers;
    for (const pid_t pid : pids) (void)end_of(pid);
    close(back[0]);
    std::printf("figure dealt.lost %u\nfigure dealt.of %u\n", requests - answers, requests);
}

using request_queue = carousel::ipc::shared_work_queue<request>;
using answer_queue = carousel::ipc::shared_queue<answer>;
/// Claims, infers, answers and commits until `stop` is set. `dies`: the worker is killed while it holds a
/// request, after the other workers, which start later, have served a hundred requests.
int serve(request_queue& incoming, answer_queue& answers, const unsigned* model, bool dies) {
    while (!dies && shared->taken == 0) usleep(50);
    while (shared->stop == 0) {
        auto task = incoming.try_claim();
        if (!task) {
            usleep(50);
            continue;
        }
        const request r = task->value();
        const unsigned y = infer(model, r.number);
        if (dies) {
            shared->taken = 1;
            while (shared->served < under_way) usleep(50);
            shared->killed_us = now_us();
            return kill(getpid(), SIGKILL);
        }
        answers.push({r.number, y, now_us() - r.requested_us}, seconds(5));
        task->commit();
        ++shared->served;
    }
    return 0;
}
request_queue open_requests() { return carousel::ipc::open(space).work_queue<request>("requests", 512, 3); }
answer_queue open_answers() { return carousel::ipc::open(space).queue<answer>("answers", 512); }
int worker(int weights, bool dies) {
    auto incoming = open_requests();
    auto answers = open_answers();
    return serve(incoming, answers, map(weights, PROT_READ), dies);
}
/// A standby: has everything that a worker has, and waits to take over.
int standby(int weights) {
    auto incoming = open_requests();
    auto answers = open_answers();
    const unsigned* const model = map(weights, PROT_READ);
    for (unsigned k = 0; k < layers; ++k) shared->sum = infer(model, k);  // touches every page
    shared->ready = 1;
    while (shared->takes_over == 0 && shared->stop == 0) usleep(20);
    shared->ready_us = now_us();
    return serve(incoming, answers, model, false);
}
/// The replacement without a standby: a new worker copies its weights, as if it loaded them from a file.
int replacement(int weights) {
    auto incoming = open_requests();
    auto answers = open_answers();
    const unsigned* const seen = map(weights, PROT_READ);
    const std::vector<unsigned> copy(seen, seen + weight_bytes / 4);
    shared->ready_us = now_us();
    return serve(incoming, answers, copy.data(), false);
}

struct tally {
    unsigned wrong = 0, lost = 0, twice = 0;
    std::vector<double> latency;
};
/// Sends two thousand requests, at most 64 in flight, and verifies each answer. Replaces the victim when it
/// is dead.
tally put_under_load(const unsigned* model, pid_t victim, const std::function<void()>& start_replacement) {
    auto incoming = open_requests();
    auto answers = open_answers();
    tally t;
    std::vector<unsigned> times(load, 0);
    for (unsigned sent = 0, got = 0; got < load;) {
        if (victim > 0 && waitpid(victim, nullptr, WNOHANG) == victim) victim = 0, start_replacement();
        for (; sent < load && sent - got < window; ++sent)
            (void)incoming.submit({sent, now_us()}, seconds(5));
        const answer a = answers.pop(seconds(10));
        t.wrong += a.value != infer(model, a.number);
        got += times[a.number]++ == 0;
        t.latency.push_back(a.took_us);
    }
    if (victim > 0) (void)end_of(victim);
    for (const unsigned n : times) t.lost += n == 0, t.twice += n > 1;
    std::sort(t.latency.begin(), t.latency.end());
    return t;
}
/// Returns the time in us from the kill until the replacement is ready.
double claimed(const char* name, int weights, bool with_standby) {
    shared->stop = shared->ready = shared->takes_over = shared->served = shared->taken = 0;
    shared->ready_us = shared->killed_us = 0;
    std::vector<pid_t> pids;
    if (with_standby) {
        pids.push_back(start([&] { return standby(weights); }));
        for (int k = 0; k < 10'000 && shared->ready == 0; ++k) usleep(500);
    }
    const pid_t victim = start([&] { return worker(weights, true); });
    for (unsigned w = 1; w < workers; ++w) pids.push_back(start([&] { return worker(weights, false); }));
    const tally t = put_under_load(map(weights, PROT_READ), victim, [&] {
        if (with_standby)
            shared->takes_over = 1;
        else
            pids.push_back(start([&] { return replacement(weights); }));
    });
    for (int k = 0; k < 50'000 && shared->ready_us == 0; ++k) usleep(100);
    const double taken_over = shared->ready_us - shared->killed_us;
    shared->stop = 1;
    for (const pid_t pid : pids) (void)end_of(pid);
    std::printf(
        "figure %s.lost %u\nfigure %s.twice %u\nfigure %s.wrong %u\nfigure %s.takeover_us %.0f\n"
        "figure %s.p50_us %.0f\nfigure %s.longest_us %.0f\n",
        name, t.lost, name, t.twice, name, t.wrong, name, taken_over, name, t.latency[t.latency.size() / 2],
        name, t.latency.back());
    return taken_over;
}

/// A worker that writes into the weights, as a wild pointer would.
void wild_write(int weights) {
    const int signal = -end_of(start([&] {
        unsigned* const w = map(weights, PROT_READ);
        *static_cast<volatile unsigned*>(w) = 1;
        return 0;
    }));
    const unsigned* const w = map(weights, PROT_READ);
    std::printf("figure wild_write.signal %d\nfigure wild_write.whole %d\n", signal,
                w[0] == 0 && w[1] == 2654435761U);
}

void run() {
    const int weights = make_weights();
    const double copies = memory("copies", weights, true);
    std::printf("figure memory.share %.3f\n", memory("one", weights, false) / copies);
    std::printf("figure weights.mib %.0f\n", weight_bytes / 1048576.0);
    dealt(weights);
    std::printf("figure load.requests %u\n", load);
    const double restarted = claimed("restart", weights, false);
    std::printf("figure standby.gain %.1f\n", restarted / claimed("standby", weights, true));
    wild_write(weights);
}

}  // namespace

int main(int argc, char** argv) {
    if (lesson::wants_usage(argc, argv, "carousel-lab-server SPACE")) return 2;
    space = argc > 1 ? argv[1] : "lab";
    shared = lesson::shared_memory<board>();
    setrlimit(RLIMIT_CORE, &no_core);
    return lesson::exit_code_of<carousel::error>([] {
        run();
        return 0;
    });
}
