// Links the whole device library, so that the test sees what any program with it depends on.

#include <cstdio>

#include "device/backend.hpp"

int main() {
    const auto context = carousel::device::open({carousel::device::device_kind::cpu, "", 0}, 1);
    std::printf("%s, CUDA %s\n", context->description().c_str(),
                carousel::device::built_with_cuda() ? "built in" : "not built in");
    return 0;
}
