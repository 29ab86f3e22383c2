// Runs a fuzz target over the files of a folder, in builds without libFuzzer: every input that has ever been
// trouble, every day.
#include <algorithm>
#include <iterator>
#include <vector>

#include "tests/fuzz/fuzz.hpp"

int main(int argc, char** argv) {
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
