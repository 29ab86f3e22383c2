// A recording from anywhere: its units are read, or it is refused (read_recording.hpp). Input: the bytes of
// the file.
#include "tests/fuzz/read_recording.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    carousel::test::read_recording({reinterpret_cast<const std::byte*>(data), size});
    return 0;
}
