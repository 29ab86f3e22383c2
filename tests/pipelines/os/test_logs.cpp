// Log lines: cut, prefixed, kept; readers that are slow or have ended.
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <csignal>
#include <fstream>

#include "core/json.hpp"
#include "os/log_pipe.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/scratch_folder.hpp"

namespace {

using namespace carousel;
using namespace carousel::supervisor;

struct pipe_pair {
    shm::unique_fd read, write;
    pipe_pair() {
        int ends[2];
        REQUIRE(::pipe2(ends, O_CLOEXEC | O_NONBLOCK) == 0);
        read.reset(ends[0]);
        write.reset(ends[1]);
    }
    std::string drain() const {
        std::string out;
        char bytes[65536];
        for (ssize_t n; (n = ::read(read.get(), bytes, sizeof bytes)) > 0;)
            out.append(bytes, static_cast<std::size_t>(n));
        return out;
    }
};

void write_text(int fd, const std::string& text) {
    REQUIRE(::write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size()));
}

}  // namespace

TEST_CASE("prefixes are aligned, and coloured only where colours are wanted") {
    CHECK(log_sink::prefixed("ab", 5, 0, false, "text") == "ab    | text");
    CHECK(log_sink::prefixed("abcde", 5, 0, false, "") == "abcde | ");
    const std::string colored = log_sink::prefixed("ab", 5, 1, true, "text");
    CHECK(colored.find("\x1b[") == 0);
    CHECK(colored.find("text") > colored.find(color_off));
}

TEST_CASE("escape sequences of a stage are visible text on the console and unchanged in the file") {
    const scratch_folder folder;
    const pipe_pair ends;
    console out(ends.write.get(), false, false);
    log_sink sink(out, "s", 1, 0, folder.path / "s.jsonl");
    const std::string text = "a\tb \x1b]0;title\x07 c";
    sink.line(1, text);
    CHECK(ends.drain() == "s | a\tb \\x1b]0;title\\x07 c\n");
    std::ifstream in(folder.path / "s.jsonl");
    CHECK(nlohmann::json::parse(in)["line"] == text);
}

TEST_CASE("an error repeated by a stage's next process is one console line, complete in the log") {
    const scratch_folder folder;
    const pipe_pair ends;
    console out(ends.write.get(), false, false);
    log_sink sink(out, "s", 1, 0, folder.path / "s.jsonl");
    const std::vector<std::string> error = {"error: Traceback:", "  line 5", "KeyError",
                                            "error: process of frame 0"};
    for (const i32 pid : {1, 2, 3}) {
        sink.line(pid, "started");  // no error: printed by each process
        for (const std::string& line : error) sink.line(pid, line);
        if (pid == 3) sink.line(pid, "error: process of frame 1");
        sink.end_of_process();
    }
    CHECK(ends.drain() ==
          "s | started\ns | error: Traceback:\ns |   line 5\ns | KeyError\ns | error: process of frame 0\n"
          "s | started\ns | repeats 4 lines of pid 1\n"
          "s | started\ns | repeats 4 lines of pid 1\ns | error: process of frame 1\n");
    CHECK(sink.last() == std::deque<std::string>{"error: Traceback:", "  line 5", "KeyError",
                                                 "error: process of frame 0", "error: process of frame 1"});
    std::size_t kept = 0;
    std::ifstream in(folder.path / "s.jsonl");
    const std::string file{std::istreambuf_iterator<char>(in), {}};
    for (std::size_t at = 0; (at = file.find("KeyError", at)) != std::string::npos; ++at) ++kept;
    CHECK(kept == 3);
}

TEST_CASE("a process that repeats its own error prints it each time") {
    const pipe_pair ends;
    console out(ends.write.get(), false, false);
    log_sink sink(out, "s", 1, 0, "");
    for (int k = 0; k < 2; ++k) sink.line(1, "error: once more");
    CHECK(ends.drain() == "s | error: once more\ns | error: once more\n");
}

TEST_CASE("a stream is split into lines, for any split into pieces") {
    line_splitter s;
    std::vector<std::string> lines;
    const auto keep = [&](std::string_view l) { lines.emplace_back(l); };
    for (const char* piece : {"on", "e\ntwo\r\n\nth", "ree"}) s.feed(piece, keep);
    s.finish(keep);
    CHECK(lines == std::vector<std::string>{"one", "two", "", "three"});
    lines.clear();
    s.feed(std::string(line_splitter::max_line * 2 + 10, 'x'), keep);
    s.finish(keep);
    REQUIRE(lines.size() == 3);
    CHECK(lines[0].size() == line_splitter::max_line);
    CHECK(lines[0].size() + lines[1].size() + lines[2].size() == line_splitter::max_line * 2 + 10);
}

TEST_CASE("a stage's lines reach the console and the file, and the last five are kept") {
    const scratch_folder folder;
    const pipe_pair out;
    console c(out.write.get(), false, false);
    log_sink sink(c, "vertex", 8, 0, (folder.path / "vertex.jsonl").string());
    shm::unique_fd stage_end;
    log_pipe p = log_pipe::make(stage_end);
    for (int k = 0; k < 7; ++k) write_text(stage_end.get(), fmt::format("line {}\n", k));
    write_text(stage_end.get(), "not \xff text\n");
    CHECK(p.drain(sink, 42));
    write_text(stage_end.get(), "the rest");
    p.close(sink, 42);
    const std::string shown = out.drain();
    CHECK_THAT(shown, test::contains("vertex   | line 0\n"));
    CHECK_THAT(shown, test::contains("vertex   | the rest\n"));
    CHECK(sink.last().size() == 5);
    CHECK(sink.last().back() == "the rest");
    std::ifstream in(folder.path / "vertex.jsonl");
    std::vector<nlohmann::json> records;
    for (std::string line; std::getline(in, line);) records.push_back(nlohmann::json::parse(line));
    REQUIRE(records.size() == 9);
    CHECK(records[3]["line"] == "line 3");
    CHECK(records[3]["pid"] == 42);
    CHECK(records[3]["time"].get<double>() > 1e9);
}

TEST_CASE("a log file that can't be written is reported once and has no other effect") {
    const pipe_pair out;
    console c(out.write.get(), false, false);
    log_sink sink(c, "s", 1, 0, "/proc/nothing/s.jsonl");
    for (int k = 0; k < 3; ++k) sink.line(1, "x");
    const std::string shown = out.drain();
    CHECK(shown.find("can't be written") == shown.rfind("can't be written"));
    CHECK(std::count(shown.begin(), shown.end(), '\n') == 4);
}

TEST_CASE("a console without a reader drops its output and raises no error") {
    std::signal(SIGPIPE, SIG_IGN);
    pipe_pair out;
    console c(out.write.get(), false, false);
    c.line("seen");
    out.read.reset();
    for (int k = 0; k < 100; ++k) c.line("unseen");
    CHECK(c.reader_gone());
}

TEST_CASE("a console without a reader never blocks and drops its oldest lines beyond its bound") {
    pipe_pair out;
    ::fcntl(out.write.get(), F_SETFL, 0);  // an ordinary, blocking pipe
    console c(out.write.get(), false, false);
    const std::string text(200, 'y');
    for (int k = 0; k < 20000; ++k) c.line(std::to_string(k) + text);
    CHECK(c.dropped() > 0);
    std::string all;
    for (int k = 0; k < 1000; ++k) {
        all += out.drain();
        c.flush();
    }
    CHECK_THAT(all, test::contains("\n19999" + text));
    CHECK(all.find("\n10000y") == std::string::npos);
}

TEST_CASE("the progress line stays at the bottom of a terminal and is an ordinary line elsewhere") {
    const pipe_pair out;
    console terminal(out.write.get(), true, true);
    terminal.status("10 frames");
    terminal.line("a message");
    terminal.clear_status();
    CHECK(out.drain() == "\r\x1b[K10 frames\r\x1b[Ka message\n10 frames\r\x1b[K");
    console file(out.write.get(), false, false);
    file.status("10 frames");
    file.line("a message");
    CHECK(out.drain() == "10 frames\na message\n");
}
