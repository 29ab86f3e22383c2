// Runs a fuzz target over the files of a folder, in builds without libFuzzer: every input that has ever
// failed, every day.
#include <sys/resource.h>

#include <algorithm>
#include <iterator>
#include <vector>

#include "tests/fuzz/fuzz.hpp"

int main(int argc, char** argv) {
    // Half of the usual stack: code that recurses over a value nested as deep as one message can be overflows
    // it, in optimised builds as well.
    rlimit stack{};
    if (::getrlimit(RLIMIT_STACK, &stack) == 0) {
        stack.rlim_cur = std::min<rlim_t>(stack.rlim_cur, 4U << 20U);
        (void)::setrlimit(RLIMIT_STACK, &stack);
    }
    std::vector<std::filesystem::path> files;
    for (int k = 1; k < argc; ++k)
        for (const auto& file : std::filesystem::directory_iterator(argv[k])) files.push_back(file.path());
    std::sort(files.begin(), files.end());
    for (const auto& path : files) {
        std::fprintf(stderr, "%s\n", path.filename().c_str());
        std::ifstream in(path, std::ios::binary);
        const std::string text{std::istreambuf_iterator<char>(in), {}};
        (void)LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(text.data()), text.size());
    }
    std::printf("%zu inputs\n", files.size());
    return files.empty() ? 1 : 0;
}
