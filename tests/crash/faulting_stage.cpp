// A stage with one fault per frame: the functions' names must be in the backtraces of its deaths. The faults
// of frames below 20 are in work on the device's thread, the others in process().
#include <sys/mman.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <string>

#include <carousel/cpu.hpp>
#include <carousel/stage.hpp>

namespace carousel::test {

#define CAROUSEL_NO_INLINE __attribute__((noinline, noclone))

volatile int zero = 0;
int* volatile nowhere = nullptr;

CAROUSEL_NO_INLINE void write_to_null() { *nowhere = 1; }  // the null write
CAROUSEL_NO_INLINE int recurse_for_ever(int depth) {
    volatile char used[4096];
    used[0] = static_cast<char>(depth);
    return recurse_for_ever(depth + 1) + used[0];
}
CAROUSEL_NO_INLINE void call_abort() {
    if (zero == 0) std::abort();
    zero = zero + 1;  // no tail call
}
CAROUSEL_NO_INLINE int divide_by_zero() { return 100 / zero; }
CAROUSEL_NO_INLINE void execute_illegal() { asm volatile("ud2"); }
CAROUSEL_NO_INLINE void read_beyond_file() {
    char path[] = "/tmp/carousel-fault-XXXXXX";
    const int fd = ::mkstemp(path);
    ::unlink(path);
    const auto* const mapped = static_cast<const volatile char*>(
        ::mmap(nullptr, 4096, PROT_READ, MAP_SHARED, fd, 0));  // the file is empty
    zero = *mapped * 0;
}
CAROUSEL_NO_INLINE void call_nowhere() {
    void (*volatile to)() = nullptr;
    to();
    zero = 0;  // no tail call
}
struct not_an_exception {};
CAROUSEL_NO_INLINE void throw_unknown() {
    if (zero == 0) throw not_an_exception{};
}
inline __attribute__((always_inline)) void write_inlined() { *nowhere = 2; }

void fault(u64 frame) {
    switch (frame) {
        case 2:
        case 22:
            return write_to_null();
        case 4:
        case 24:
            zero = recurse_for_ever(0) * 0;
            return;
        case 6:
            return call_abort();
        case 8:
            zero = divide_by_zero();
            return;
        case 10:
            return execute_illegal();
        case 12:
            return read_beyond_file();
        case 14:
            return call_nowhere();
        case 26:
            return throw_unknown();
        case 28:
            write_inlined();
            return;
        default:
            return;
    }
}

class faulting_stage : public stage {
public:
    description configure(const configuration&) override {
        return {.outputs = {{"test.number", {{"value", element::u64_, {1}}}, {}}}, .device = runs_on::cpu};
    }
    void process(frame& f) override {
        const u64 number = f.frame_number();
        const u64* in = f.input().plane<const u64>("value").data();
        u64* out = f.output().plane<u64>("value").data();
        if (number >= 20) fault(number);
        cpu::enqueue(f, [=](cpu::pool&) {
            if (number < 20) fault(number);
            *out = *in;
        });
    }
};

}  // namespace carousel::test

int main(int argc, char** argv) { return carousel::stage_main<carousel::test::faulting_stage>(argc, argv); }
