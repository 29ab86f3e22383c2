#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <future>

#include "core/errors.hpp"
#include "core/io.hpp"
#include "core/output_file.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/scratch_folder.hpp"
#include "tests/support/skip.hpp"

using namespace carousel;
namespace fs = std::filesystem;

namespace {

struct place : scratch_folder {
    [[nodiscard]] std::string operator/(const char* name) const { return (path / name).string(); }
};

int written(const std::string& path, std::string_view text) {
    return write_output_file(path, {std::as_bytes(std::span(text.data(), text.size()))});
}

/// A process that reads the FIFO to its end.
std::future<std::optional<std::string>> reader_of(const std::string& path) {
    return std::async(std::launch::async, [path] { return read_file(path); });
}

}  // namespace

TEST_CASE("an output replaces a regular file as a whole, and a new file appears as a whole") {
    const place p;
    for (const char* text : {"first", "second"}) {
        output_file file(p / "out");
        CHECK(read_file(p / "out").value_or("") == (std::string_view(text) == "first" ? "" : "first"));
        file.write(text);
        CHECK(read_file(p / "out").value_or("") == text);
    }
    { const output_file unwritten(p / "out"); }
    CHECK(read_file(p / "out").value_or("") == "second");
    CHECK(written(p / "out", "third") == 0);
    CHECK(read_file(p / "out").value_or("") == "third");
    CHECK(p.names() == std::vector<std::string>{"out"});
}

TEST_CASE("an output through symbolic links writes the target and keeps the links, even dangling") {
    const place p;
    fs::create_directory(p.path / "there");
    fs::create_symlink("there/target", p.path / "near");
    fs::create_symlink(p.path / "near", p.path / "out");
    for (const char* text : {"made", "replaced"}) {
        output_file(p / "out").write(text);
        CHECK(read_file(p / "there/target").value_or("") == text);
    }
    CHECK(written(p / "out", "short") == 0);
    CHECK(read_file(p / "there/target").value_or("") == "short");
    output_stream(p / "out").write("line");
    CHECK(read_file(p / "there/target").value_or("") == "line");
    CHECK(fs::is_symlink(p.path / "near"));
    CHECK(fs::is_symlink(p.path / "out"));
    CHECK(scratch_folder::names_in(p.path / "there") == std::vector<std::string>{"target"});
    fs::create_symlink("loop", p.path / "loop");
    CHECK(written(p / "loop", "x") == ELOOP);
}

TEST_CASE("an output through another user's link in a folder like /tmp is refused") {
    if (::geteuid() != 0) CAROUSEL_SKIP("only root can give a link to another user");
    const place p;
    const std::string shared = p / "shared", link = p / "shared/out";
    fs::create_directory(shared);
    REQUIRE(::chmod(shared.c_str(), 01777) == 0);
    fs::create_symlink(p.path / "target", link);
    REQUIRE(::lchown(link.c_str(), 65534, 65534) == 0);
    CHECK(written(link, "x") == EACCES);
    CHECK_THROWS_AS(output_stream(link), output_error);
    CHECK_FALSE(fs::exists(p.path / "target"));
    REQUIRE(::lchown(link.c_str(), 0, 0) == 0);
    CHECK(written(link, "x") == 0);
    CHECK(fs::is_symlink(link));
}

TEST_CASE("an output into a FIFO reaches its reader, and the FIFO stays") {
    const place p;
    const std::string fifo = p / "fifo", text(200'000, 'x');
    REQUIRE(::mkfifo(fifo.c_str(), 0600) == 0);
    for (const int way : {0, 1, 2}) {
        auto read = reader_of(fifo);
        if (way == 0) output_file(fifo).write(text);
        if (way == 1) CHECK(written(fifo, text) == 0);
        if (way == 2) output_stream(fifo).write(text);
        CHECK((read.get() == text));
    }
    CHECK(fs::is_fifo(fifo));
    CHECK(p.names() == std::vector<std::string>{"fifo"});
    CHECK_FALSE(find_output(fifo)->is_file);
}

TEST_CASE("an output named as a descriptor of this process continues at the descriptor's position") {
    const place p;
    const int fd = ::open((p / "all").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    REQUIRE(fd >= 0);
    REQUIRE(::write(fd, "before ", 7) == 7);
    fs::create_symlink("/proc/self/fd/" + std::to_string(fd), p.path / "out");
    output_file(p / "out").write("here ");
    CHECK(written(fmt::format("/dev/fd/{}", fd), "and there ") == 0);
    REQUIRE(::write(fd, "after", 5) == 5);
    ::close(fd);
    CHECK(read_file(p / "all").value_or("") == "before here and there after");
    CHECK(fs::is_symlink(p.path / "out"));
}

TEST_CASE("an output into a device is written into it, and its error is reported") {
    const place p;
    REQUIRE(find_output("/dev/null"));
    CHECK_FALSE(find_output("/dev/null")->is_file);
    fs::create_symlink("/dev/full", p.path / "out");
    if (::access("/dev/full", W_OK) == 0) CHECK(written(p / "out", "x") == ENOSPC);
    CHECK(fs::is_symlink(p.path / "out"));
}

TEST_CASE("an output that can't be written is refused before the work, with file, cause and remedy") {
    const place p;
    CHECK_THROWS_WITH(output_file(p / "absent/out"), test::contains("absent/out can't be written") &&
                                                         test::contains("No such file") &&
                                                         test::contains("choose"));
    CHECK_THROWS_WITH(output_file(p.path.string()), test::contains("Is a directory"));
    CHECK_THROWS_WITH(output_file(p / "absent/out", "the report", "name another"),
                      test::contains("the report can't be written to") && test::contains("name another"));
    CHECK_THROWS_AS(output_stream(p / "absent/out"), output_error);
    CHECK(p.names().empty());
}

TEST_CASE("only the temporary file of a process that has ended counts as abandoned") {
    CHECK(temporary_output("a/b.png", 7) == "a/.b.png.carousel-tmp.7");
    CHECK_FALSE(is_abandoned_output(temporary_output("b.png", ::getpid())));
    CHECK(is_abandoned_output(temporary_output("b.png", 0x7FFF'FFFF)));
    CHECK_FALSE(is_abandoned_output("b.png"));
    CHECK_FALSE(is_abandoned_output(".b.png.carousel-tmp.x"));
}
