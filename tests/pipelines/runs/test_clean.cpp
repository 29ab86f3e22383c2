// Leftovers are created in folders of the test, next to live runs.

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include <algorithm>

#include "core/json.hpp"
#include "run/directory.hpp"
#include "runs/clean.hpp"
#include "runs/run_lock.hpp"
#include "shm/fd_socket.hpp"
#include "shm/process_fd.hpp"
#include "shm/runtime_folder.hpp"
#include "tests/pipelines/spec/world.hpp"

using namespace carousel;
using namespace carousel::test;
using namespace carousel::supervisor;

namespace {

/// The identity of a process that has ended.
shm::process_id dead_process() {
    const pid_t child = ::fork();
    if (child == 0) ::_exit(0);
    const shm::process_id id{child, shm::start_time_of(child)};
    ::waitpid(child, nullptr, 0);
    return id;
}

std::string make_run(const std::string& name, const shm::process_id& process) {
    const std::string folder = run::make_run_folder(name);
    run::write_record(folder, {process, "id-" + name, name, "", "", ""});
    return folder;
}

void make_old(const std::string& path) {
    const timespec long_ago[2] = {{1'000'000'000, 0}, {1'000'000'000, 0}};
    REQUIRE(::utimensat(AT_FDCWD, path.c_str(), long_ago, AT_SYMLINK_NOFOLLOW) == 0);
}

clean_places places_of(const world& w) {
    std::filesystem::create_directories(w.path("shm"));
    return {{run::runs_folder()}, w.path("shm")};
}

std::vector<std::string> paths_of(const std::vector<leftover>& all) {
    std::vector<std::string> paths;
    for (const leftover& l : all) paths.push_back(l.path);
    std::sort(paths.begin(), paths.end());
    return paths;
}

}  // namespace

TEST_CASE("leftovers of dead runs are found and removed, and live runs are kept") {
    const world w;
    const clean_places places = places_of(w);
    const std::string dead = make_run("dead", dead_process()),
                      living = make_run("living", shm::this_process());
    w.write("shm/carousel-id-dead", "x");
    w.write("shm/carousel-id-dead.trace", "x");  // of `carousel trace`
    w.write("shm/carousel-id-living", "x");
    w.write("shm/carousel-id-living.trace", "x");
    w.write("shm/carousel-orphan", "x");
    w.write("shm/carousel-new", "x");  // a process may be about to write its record
    w.write("shm/other-program", "x");
    for (const char* name :
         {"carousel-id-living", "carousel-id-living.trace", "carousel-orphan", "other-program"})
        make_old(w.path("shm/" + std::string(name)));
    const auto found = find_leftovers(places);
    CHECK(paths_of(found) == std::vector<std::string>{dead, w.path("shm/carousel-id-dead"),
                                                      w.path("shm/carousel-id-dead.trace"),
                                                      w.path("shm/carousel-orphan")});
    for (const leftover& l : found) {
        CHECK(l.kept.empty());
        CHECK(remove_leftover(l).empty());
        CHECK_FALSE(std::filesystem::exists(l.path));
    }
    CHECK(std::filesystem::exists(living + "/run.json"));
    CHECK(std::filesystem::exists(w.path("shm/carousel-id-living")));
    CHECK(std::filesystem::exists(w.path("shm/carousel-id-living.trace")));
    CHECK(std::filesystem::exists(w.path("shm/carousel-new")));
    CHECK(std::filesystem::exists(w.path("shm/other-program")));
    CHECK(find_leftovers(places).empty());
}

TEST_CASE("pictures of a dead run are the user's and stay") {
    const world w;
    const std::string folder = make_run("dead", dead_process());
    w.write("carousel/dead/pictures/frame_00001.png", "png");
    w.write("carousel/dead/ledger-display", "x");
    const auto found = find_leftovers(places_of(w));
    REQUIRE(found.size() == 1);
    CHECK(remove_leftover(found[0]).empty());
    CHECK(std::filesystem::exists(folder + "/pictures/frame_00001.png"));
    CHECK_FALSE(std::filesystem::exists(folder + "/ledger-display"));
    CHECK_FALSE(std::filesystem::exists(folder + "/run.json"));
    CHECK(find_leftovers(places_of(w)).empty());
}

TEST_CASE("a lost run's records are saved before its folder is removed, or the folder is kept") {
    const world w;
    const std::string folder = make_run("dead", dead_process());
    w.write("carousel/dead/logs/sink.jsonl", "{}");
    const std::string blocking = w.write("carousel-lost", "not a folder");
    const auto found = find_leftovers(places_of(w));
    REQUIRE(found.size() == 1);
    CHECK(remove_leftover(found[0]) == "the data of the run can't be saved");
    CHECK(std::filesystem::exists(folder + "/logs/sink.jsonl"));
    std::filesystem::remove(blocking);
    CHECK(remove_leftover(found[0]).empty());
    CHECK_FALSE(std::filesystem::exists(folder));
    CHECK(std::filesystem::exists(w.path("carousel-lost/dead.id-dead/logs/sink.jsonl")));
    CHECK(find_leftovers(places_of(w)).empty());
}

TEST_CASE("memory that a process still maps is not removed") {
    const world w;
    const clean_places places = places_of(w);
    make_run("dead", dead_process());
    for (const char* name : {"shm/carousel-id-dead", "shm/carousel-elsewhere"}) {
        const std::string path = w.write(name, std::string(4096, 'x'));
        make_old(path);
        const shm::unique_fd fd(::open(path.c_str(), O_RDWR | O_CLOEXEC));
        // until the process ends
        REQUIRE(::mmap(nullptr, 4096, PROT_READ, MAP_SHARED, fd.get(), 0) != MAP_FAILED);
    }
    const auto found = find_leftovers(places);
    CHECK(paths_of(found) ==
          std::vector<std::string>{run::runs_folder() + "/dead", w.path("shm/carousel-id-dead")});
    for (const leftover& l : found) {
        CHECK_THAT(l.kept, contains("still running"));
        CHECK(remove_leftover(l) == l.kept);
        CHECK(std::filesystem::exists(l.path));
    }
}

TEST_CASE("a run that begins between the check and the removal is not removed") {
    const world w;
    make_run("demo", dead_process());
    const auto found = find_leftovers(places_of(w));
    REQUIRE(found.size() == 1);
    run::write_record(run::run_folder("demo"), {shm::this_process(), "new", "demo", "", "", "", ""});
    CHECK(remove_leftover(found[0]) == "a run of this name has started");
    CHECK(run::read_record(run::run_folder("demo"))->run_id == "new");
}

TEST_CASE("a folder without a record is a leftover if no process listens at its old socket") {
    const world w;
    const std::string folder = run::make_run_folder("half");
    { const shm::unique_fd listener = shm::listen_at(folder + "/control.sock"); }
    std::ofstream(folder + "/log") << "x";
    CHECK(find_leftovers(places_of(w)).empty());  // too young
    if (std::filesystem::exists(folder + "/control.sock")) {
        make_old(folder + "/control.sock");
        const auto found = find_leftovers(places_of(w));
        REQUIRE(found.size() == 1);
        CHECK(remove_leftover(found[0]).empty());
    }
    const std::string served = run::make_run_folder("served");
    const shm::unique_fd listener = shm::listen_at(served + "/control.sock");
    make_old(served + "/control.sock");
    CHECK(find_leftovers(places_of(w)).empty());
}

TEST_CASE("a run of another namespace is a leftover only when no process has a lock on it") {
    const world w;
    const clean_places places = places_of(w);
    const std::string folder = make_run("far", dead_process()), file = folder + "/run.json";
    auto j = nlohmann::json::parse(std::ifstream(file));
    j["pid_namespace"] = "pid:[1]";
    std::ofstream(file) << j;
    const std::string object = w.write("shm/carousel-id-far", "x");
    make_old(object);
    const shm::unique_fd lock(::open((folder + "/lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
    SECTION("its supervisor lives") {
        REQUIRE(::flock(lock.get(), LOCK_EX | LOCK_NB) == 0);
        CHECK(find_leftovers(places).empty());
    }
    SECTION("stages live") {
        REQUIRE(shm::lock_shared(lock.get()) == 0);
        const auto found = find_leftovers(places);
        REQUIRE(found.size() == 2);
        CHECK_THAT(found[0].kept, contains("still running"));
    }
    SECTION("no process lives") {
        for (const leftover& l : find_leftovers(places)) CHECK(remove_leftover(l).empty());
        CHECK_FALSE(std::filesystem::exists(folder));
        CHECK_FALSE(std::filesystem::exists(object));
    }
    SECTION("it restarts between the check and the removal") {
        const auto found = find_leftovers(places);
        REQUIRE(found.size() == 2);
        REQUIRE(::flock(lock.get(), LOCK_EX | LOCK_NB) == 0);
        CHECK(remove_leftover(found[0]) == "a run of this name has started");
        CHECK(std::filesystem::exists(file));
    }
}

TEST_CASE("a block that any process has locked is not removed, in any namespace") {
    const world w;
    const clean_places places = places_of(w);
    const std::string block = w.write("shm/carousel-elsewhere", "x"),
                      trace = w.write("shm/carousel-elsewhere.trace", "x");
    make_old(block);
    make_old(trace);
    shm::unique_fd holder(::open(block.c_str(), O_RDWR | O_CLOEXEC));
    SECTION("before the check") {
        REQUIRE(shm::lock_shared(holder.get()) == 0);
        CHECK(find_leftovers(places).empty());
    }
    SECTION("since the check") {
        const auto found = find_leftovers(places);
        REQUIRE(found.size() == 2);
        REQUIRE(shm::lock_shared(holder.get()) == 0);
        for (const leftover& l : found) CHECK_THAT(remove_leftover(l), contains("holds the run's lock"));
        holder.reset();
        for (const leftover& l : found) CHECK(remove_leftover(l).empty());
    }
}

TEST_CASE("a start removes only the leftovers of dead runs with its own name") {
    const world w;
    const std::string mine = make_run("mine", dead_process()), others = make_run("others", dead_process());
    std::ofstream(mine + "/ledger-display.bin") << "x";
    {
        const run_lock lock("mine", 0);
        lock.clear_leftovers();
        CHECK_FALSE(std::filesystem::exists(mine + "/ledger-display.bin"));
    }
    CHECK(std::filesystem::exists(others + "/run.json"));
}

TEST_CASE("a start waits for stages of its name that it can neither see nor end") {
    const world w;
    const std::string folder = make_run("far", dead_process()), file = folder + "/run.json";
    auto j = nlohmann::json::parse(std::ifstream(file));
    j["pid_namespace"] = "pid:[1]";
    std::ofstream(file) << j;
    std::ofstream(folder + "/lock") << "";
    shm::unique_fd stage = shm::join_folder(folder);
    CHECK_THROWS_WITH(run_lock("far", 0), contains("can neither adopt nor end them"));
    const shm::unique_fd leaves = shm::lead_folder(folder);  // a stage that leaves needs the lock
    CHECK(leaves);
    stage.reset();
}

TEST_CASE("a folder that contains only an old lock without a holder is a leftover") {
    const world w;
    const std::string folder = run::make_run_folder("begun"), path = folder + "/lock";
    shm::unique_fd lock = shm::lead_folder(folder);
    REQUIRE(lock);
    make_old(path);
    CHECK(find_leftovers(places_of(w)).empty());
    lock.reset();
    const auto found = find_leftovers(places_of(w));
    REQUIRE(found.size() == 1);
    CHECK(remove_leftover(found[0]).empty());
    CHECK_FALSE(std::filesystem::exists(folder));
}

TEST_CASE("a runtime directory that is not ours, private and a folder is refused or repaired") {
    const world w;
    const std::string folder = run::make_run_folder("demo");
    ::chmod(folder.c_str(), 0777);
    (void)run::make_run_folder("demo");
    struct stat info {};
    REQUIRE(::stat(folder.c_str(), &info) == 0);
    CHECK((info.st_mode & 0777) == 0700);
    w.write("carousel/file", "x");
    CHECK_THROWS_AS(run::make_run_folder("file"), shm_error);
    CHECK_FALSE(run::read_record(folder).has_value());
    w.write("carousel/demo/run.json", "{\"pid\": \"x\"}");
    CHECK_FALSE(run::read_record(folder).has_value());
    for (const char* bad : {"", ".", "..", "a/b", ".x", "x.", "-x", "a b"})
        CHECK_FALSE(shm::is_folder_name(bad));
    CHECK(shm::is_folder_name("demo-2.x_y"));
}

TEST_CASE("clean prints each of its actions on the command line") {
    const world w;
    const std::string folder = make_run("dead", dead_process());
    CHECK_THAT(carousel::test::carousel({"clean", "--dry-run"}, places_of(w)).out,
               contains("would remove runtime directory " + folder));
    CHECK(std::filesystem::exists(folder));
    const auto j = nlohmann::json::parse(carousel::test::carousel({"clean", "--json"}, places_of(w)).out);
    CHECK(j.at("ok") == true);
    const auto& items = j.at("leftovers");
    CHECK(std::any_of(items.begin(), items.end(),
                      [&](const auto& i) { return i.at("path") == folder && i.at("removed") == true; }));
    CHECK_FALSE(std::filesystem::exists(folder));
}
