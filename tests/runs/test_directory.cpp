#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "run/directory.hpp"
#include "shm/runtime_folder.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/scratch_folder.hpp"

using namespace carousel;

namespace {

/// Another XDG_RUNTIME_DIR for a while.
class runtime_directory {
public:
    explicit runtime_directory(const char* value) {
        if (const char* before = std::getenv("XDG_RUNTIME_DIR")) before_ = before;
        value != nullptr ? ::setenv("XDG_RUNTIME_DIR", value, 1) : ::unsetenv("XDG_RUNTIME_DIR");
    }
    ~runtime_directory() {
        before_.empty() ? ::unsetenv("XDG_RUNTIME_DIR") : ::setenv("XDG_RUNTIME_DIR", before_.c_str(), 1);
    }

private:
    std::string before_;
};

const std::string elsewhere = "/tmp/carousel-" + std::to_string(::geteuid());

run::record record_of(const std::string& name) {
    return {shm::this_process(), "id-" + name, name, "demo.toml", "", "", ""};
}

}  // namespace

TEST_CASE("runs are in an absolute runtime directory of this user, else in the temporary folder") {
    scratch_folder folder;
    const std::string file = (folder.path / "file").string();
    std::ofstream(file) << "not a folder";
    CHECK(([&] {
              const runtime_directory d(folder.path.c_str());
              return run::runs_folder();
          }()) == folder.path.string() + "/carousel");
    for (const char* refused : {"relative", ".", "/nonexistent-runtime", file.c_str(), "/proc/1/nonexistent",
                                static_cast<const char*>(nullptr)})
        CHECK(([&] {
                  const runtime_directory d(refused);
                  return run::runs_folder();
              }()) == elsewhere);
}

TEST_CASE("a message about a missing run states why the runtime directory is not used") {
    using test::contains;
    scratch_folder folder;
    const auto text = [](const char* value) {
        const runtime_directory d(value);
        return shm::unused_runtime_text();
    };
    CHECK(text(nullptr).empty());
    CHECK(text(folder.path.c_str()).empty());
    CHECK_THAT(text("relative"),
               contains("XDG_RUNTIME_DIR = relative is not used: it is not an absolute path"));
    CHECK_THAT(text("/nonexistent-runtime"), contains("No such file or directory"));
    CHECK_THAT(text("/proc/version"), contains("it is not a folder"));
    if (::geteuid() != 0 || ::chown(folder.path.c_str(), 12345, 12345) != 0) return;
    CHECK_THAT(text(folder.path.c_str()),
               contains("it belongs to user 12345, but this process runs as 0, and a run is "
                        "accessible to its own user only"));
}

TEST_CASE("a runtime directory of another user is not taken") {
    struct stat root {};
    REQUIRE(::stat("/", &root) == 0);
    if (root.st_uid == ::geteuid()) {  // as root: a folder that is given away
        scratch_folder folder;
        if (::chown(folder.path.c_str(), 12345, 12345) != 0) return;
        const runtime_directory d(folder.path.c_str());
        CHECK(run::runs_folder() == elsewhere);
        return;
    }
    const runtime_directory d("/");
    CHECK(run::runs_folder() == elsewhere);
}

TEST_CASE("a record is read as it was written, with the folder in which it was found") {
    scratch_folder folder;
    const runtime_directory d(folder.path.c_str());
    const std::string place = run::make_run_folder("one");
    CHECK_FALSE(run::read_record(place));
    run::write_record(place, record_of("one"));
    const auto r = run::read_record(place);
    REQUIRE(r);
    CHECK(r->run_id == "id-one");
    CHECK(r->folder == place);
    CHECK(r->socket() == place + "/control.sock");
    CHECK(run::is_alive(*r));
    std::ofstream(place + "/run.json") << "{\"pid\": \"seven\"}";
    CHECK_FALSE(run::read_record(place));
}

TEST_CASE("a run of another namespace or boot counts as live while its folder's lock is held") {
    scratch_folder folder;
    const runtime_directory d(folder.path.c_str());
    const std::string place = run::make_run_folder("far");
    run::write_record(place, record_of("far"));
    run::record r = *run::read_record(place);
    CHECK(run::is_of_here(r));
    r.supervisor = {1, 1};
    CHECK_FALSE(run::is_alive(r));
    const auto elsewhere = GENERATE(0, 1, 2);
    (elsewhere == 0 ? r.pid_namespace : elsewhere == 1 ? r.boot_id : r.clock.time_namespace) = "another";
    CHECK_FALSE(run::is_of_here(r));
    CHECK_FALSE(run::is_alive(r));
    const shm::unique_fd lock(::open(shm::folder_lock(place).c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
    CHECK_FALSE(run::is_alive(r));
    REQUIRE(::flock(lock.get(), LOCK_EX | LOCK_NB) == 0);
    CHECK(run::is_alive(r));
    CHECK_FALSE(run::is_alive(r, true));
    REQUIRE(::flock(lock.get(), LOCK_UN) == 0);
    CHECK_FALSE(run::is_alive(r));
}

TEST_CASE("runs are listed by name, and a folder without a record is not listed") {
    scratch_folder folder;
    const runtime_directory d(folder.path.c_str());
    for (const char* name : {"b", "a", "c"}) run::write_record(run::make_run_folder(name), record_of(name));
    std::filesystem::remove(run::run_folder("c") + "/run.json");
    const auto runs = run::living_runs();
    REQUIRE(runs.size() == 2);
    CHECK(runs[0].name == "a");
    CHECK(runs[1].name == "b");
}
