#include <cerrno>
#include <fstream>

#include "core/io.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/scratch_folder.hpp"

using namespace carousel;

TEST_CASE("a file is read completely, for any content and length") {
    const scratch_folder folder;
    const std::string path = (folder.path / "whole").string();
    for (const std::size_t size :
         {std::size_t{0}, std::size_t{1}, std::size_t{16384}, std::size_t{100'003}}) {
        std::string text(size, 'x');
        for (std::size_t k = 0; k < size; k += 7) text[k] = '\0';
        std::ofstream(path, std::ios::binary) << text;
        const std::optional<std::string> got = read_file(path);
        REQUIRE(got.has_value());
        CHECK((*got == text));
    }
    CHECK(read_file("/proc/self/stat").value_or("").size() > 20);  // reports a size of 0
}

TEST_CASE("a file that can't be opened or read gives no value and a reason, never an exception") {
    CHECK_FALSE(read_file("/nowhere/at/all").has_value());
    CHECK(errno == ENOENT);
    CHECK_FALSE(read_file("/tmp").has_value());
    CHECK(errno == EISDIR);
    CHECK_FALSE(
        read_file("/proc/self/mem")
            .has_value());  // opens and fails at the first read, as /proc/PID/environ of an ending process
    CHECK(errno == EIO);
}

TEST_CASE("a folder's entries are sorted, and its bytes are those of regular files, links aside") {
    const scratch_folder folder;
    std::filesystem::create_directories(folder.path / "b" / "c");
    std::ofstream(folder.path / "a") << "12345";
    std::ofstream(folder.path / "b" / "c" / "d") << "678";
    std::filesystem::create_symlink(folder.path / "a", folder.path / "z");
    CHECK(entries_of(folder.path) ==
          std::vector<std::filesystem::path>{folder.path / "a", folder.path / "b", folder.path / "z"});
    CHECK(bytes_in(folder.path) == 8);
    CHECK(entries_of(folder.path / "absent").empty());
    CHECK(bytes_in(folder.path / "absent") == 0);
}
