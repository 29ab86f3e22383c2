#include "os/terminal.hpp"
#include "tests/support/catch.hpp"

using namespace carousel::supervisor;

namespace {
std::vector<int> keys_of(std::string bytes, bool complete = true) {
    std::vector<int> out;
    while (const int key = take_key(bytes, complete)) out.push_back(key);
    return out;
}
}  // namespace

TEST_CASE("each key of one read is returned, and sequences of special keys as one key") {
    CHECK(keys_of("ry") == std::vector<int>{'r', 'y'});
    CHECK(keys_of("\x1b[A\x1b[B\x1bOAk") == std::vector<int>{key_up, key_down, key_up, 'k'});
    CHECK(keys_of("\x1b[5~\x1b[6~\x1b[1~\x1b[4~\x1b[H\x1b[F") ==
          std::vector<int>{key_page_up, key_page_down, key_home, key_end, key_home, key_end});
    CHECK(keys_of("\x1b[1;5C\x1b[24~\xc3\xa4\x1bxq") ==
          std::vector<int>{'q'});  // none of the others has a meaning
}

TEST_CASE("a single ESC is the key Esc only if no sequence follows") {
    CHECK(keys_of("\x1b", false).empty());
    CHECK(keys_of("\x1b") == std::vector<int>{'\x1b'});
    CHECK(keys_of("\x1b\x1b[A") == std::vector<int>{'\x1b', key_up});
    std::string bytes = "\x1b[";
    CHECK(take_key(bytes, false) == 0);
    bytes += "B";
    CHECK(take_key(bytes, false) == key_down);
    CHECK(keys_of("\x1b[").empty());
}
