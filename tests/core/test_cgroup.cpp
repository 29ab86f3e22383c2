// Groups of version 1, version 2 and both, as files below a folder that stands for the machine's root.
#include <filesystem>
#include <string>

#include "core/cgroup.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/scratch_folder.hpp"

namespace {

using namespace carousel;

struct machine {
    scratch_folder folder;
    void write(const std::string& path, const std::string& text) const {
        std::filesystem::create_directories((folder.path / path).parent_path());
        (void)folder.write(path, text);
    }
    void mounts(const std::string& text) const { write("proc/self/mountinfo", text); }
    void member(const std::string& text) const { write("proc/self/cgroup", text); }
    [[nodiscard]] cgroups groups() const { return cgroups::of(0, folder.path.string()); }
    [[nodiscard]] std::string at(const std::string& path) const { return (folder.path / path).string(); }
};

constexpr const char* unified_mount =
    "22 21 0:20 / /proc rw - proc proc rw\n30 22 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 "
    "rw,nsdelegate\n";

}  // namespace

TEST_CASE("the tightest limit of version 2 is found in an ancestor, page cache left out") {
    const machine m;
    m.mounts(unified_mount);
    m.member("0::/slice/job\n");
    m.write("sys/fs/cgroup/slice/job/memory.max", "max\n");
    m.write("sys/fs/cgroup/slice/memory.max", "1000000\n");
    m.write("sys/fs/cgroup/slice/memory.current", "900000\n");
    m.write("sys/fs/cgroup/slice/memory.stat", "anon 5\ninactive_file 300000\n");
    m.write("sys/fs/cgroup/slice/job/cpu.max", "max 100000\n");
    m.write("sys/fs/cgroup/slice/cpu.max", "150000 100000\n");
    m.write("sys/fs/cgroup/slice/job/pids.max", "20\n");
    m.write("sys/fs/cgroup/slice/job/pids.current", "18\n");
    m.write("sys/fs/cgroup/slice/pids.max", "max\n");
    const auto memory = m.groups().memory();
    REQUIRE(memory.has_value());
    CHECK(memory->limit == 1'000'000);
    CHECK(memory->used == 600'000);
    CHECK(memory->left() == 400'000);
    CHECK(memory->file == m.at("sys/fs/cgroup/slice/memory.max"));
    const auto cpu = m.groups().cpu();
    REQUIRE(cpu.has_value());
    CHECK(cpu->cpus == 1.5);
    const auto pids = m.groups().pids();
    REQUIRE(pids.has_value());
    CHECK(pids->left() == 2);
}

TEST_CASE("limits of version 1 are read per controller, below what each mount shows") {
    const machine m;
    // a container that sees its own group as the mount's root, with a blank in its name
    m.mounts(
        "40 39 0:30 /docker/a\\040b /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n"
        "41 39 0:31 /docker/a\\040b /sys/fs/cgroup/cpu,cpuacct ro - cgroup cgroup rw,cpu,cpuacct\n"
        "42 39 0:32 / /sys/fs/cgroup/pids ro - cgroup cgroup rw,pids\n");
    m.member("9:memory:/docker/a b/in\n4:cpu,cpuacct:/docker/a b\n2:pids:/x\n1:name=systemd:/\n");
    m.write("sys/fs/cgroup/memory/in/memory.limit_in_bytes", "9223372036854771712\n");
    m.write("sys/fs/cgroup/memory/memory.limit_in_bytes", "2000\n");
    m.write("sys/fs/cgroup/memory/memory.usage_in_bytes", "1500\n");
    m.write("sys/fs/cgroup/memory/memory.stat", "inactive_file 1\ntotal_inactive_file 500\n");
    m.write("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "50000\n");
    m.write("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "200000\n");
    m.write("sys/fs/cgroup/pids/x/pids.max", "max\n");
    const auto memory = m.groups().memory();
    REQUIRE(memory.has_value());
    CHECK(memory->left() == 1000);
    const auto cpu = m.groups().cpu();
    REQUIRE(cpu.has_value());
    CHECK(cpu->cpus == 0.25);
    CHECK_FALSE(m.groups().pids().has_value());
    CHECK(m.groups().chain(cgroup_controller::memory).folders ==
          std::vector<std::string>{m.at("sys/fs/cgroup/memory/in"), m.at("sys/fs/cgroup/memory")});
}

TEST_CASE("with both versions mounted, a controller is read where it is attached") {
    const machine m;
    m.mounts(
        "40 39 0:30 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
        "41 39 0:31 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n");
    m.member("3:memory:/old\n0::/new\n");
    CHECK_FALSE(m.groups().chain(cgroup_controller::memory).v2);
    CHECK(m.groups().chain(cgroup_controller::cpu).v2);
    CHECK(m.groups().chain(cgroup_controller::cpu).folders.front() == m.at("sys/fs/cgroup/unified/new"));
}

TEST_CASE("memory.high bounds the memory where it is the tighter limit, in any ancestor") {
    const machine m;
    m.mounts(unified_mount);
    m.member("0::/slice/job\n");
    m.write("sys/fs/cgroup/slice/job/memory.max", "1000\n");
    m.write("sys/fs/cgroup/slice/job/memory.high", "max\n");
    m.write("sys/fs/cgroup/slice/job/memory.current", "100\n");
    m.write("sys/fs/cgroup/slice/memory.high", "700\n");
    m.write("sys/fs/cgroup/slice/memory.current", "200\n");
    const auto memory = m.groups().memory();
    REQUIRE(memory.has_value());
    CHECK(memory->left() == 500);
    CHECK(memory->file == m.at("sys/fs/cgroup/slice/memory.high"));
}

TEST_CASE("the set of processors is that of the nearest group that has one, in either version") {
    const machine m;
    m.mounts(unified_mount);
    m.member("0::/slice/job\n");
    CHECK_FALSE(m.groups().cpu_set().has_value());
    m.write("sys/fs/cgroup/cpuset.cpus.effective", "0-15\n");
    CHECK(m.groups().cpu_set()->cpus == "0-15");
    m.write("sys/fs/cgroup/slice/cpuset.cpus.effective", "2-3,8\n");
    CHECK(m.groups().cpu_set()->cpus == "2-3,8");
    CHECK(m.groups().cpu_set()->file == m.at("sys/fs/cgroup/slice/cpuset.cpus.effective"));
    m.mounts("40 39 0:30 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset\n");
    m.member("3:cpuset:/old\n");
    m.write("sys/fs/cgroup/cpuset/old/cpuset.cpus", "1\n");
    m.write("sys/fs/cgroup/cpuset/old/cpuset.effective_cpus", "0\n");
    CHECK(m.groups().cpu_set()->cpus == "0");
}

TEST_CASE("throttled time is added over the ancestors, in nanoseconds") {
    const machine m;
    m.mounts(unified_mount);
    m.member("0::/a/b\n");
    m.write("sys/fs/cgroup/a/b/cpu.stat", "usage_usec 1\nnr_throttled 2\nthrottled_usec 30\n");
    m.write("sys/fs/cgroup/a/cpu.stat", "throttled_usec 4\n");
    CHECK(m.groups().throttled_ns() == 34'000);
}

TEST_CASE("out-of-memory kills are those of the group, or of the machine where no group counts them") {
    const machine m;
    CHECK_FALSE(m.groups().oom_kills().has_value());
    m.write("proc/vmstat", "nr_free_pages 5\noom_kill 7\n");
    m.mounts(unified_mount);
    m.member("0::/a\n");
    CHECK(m.groups().oom_kills() == 7);
    m.write("sys/fs/cgroup/a/memory.events", "low 0\noom 9\noom_kill 3\noom_group_kill 0\n");
    CHECK(m.groups().oom_kills() == 3);
    m.mounts("40 39 0:30 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n");
    m.member("3:memory:/old\n");
    m.write("sys/fs/cgroup/memory/old/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 4\n");
    CHECK(m.groups().oom_kills() == 4);
}

TEST_CASE("a frozen group is recognised in either version") {
    const machine m;
    m.mounts(unified_mount);
    m.member("0::/a\n");
    CHECK_FALSE(m.groups().frozen());
    m.write("sys/fs/cgroup/a/cgroup.events", "populated 1\nfrozen 1\n");
    CHECK(m.groups().frozen());
    m.mounts("40 39 0:30 / /sys/fs/cgroup/freezer rw - cgroup cgroup rw,freezer\n");
    m.member("6:freezer:/f\n");
    m.write("sys/fs/cgroup/freezer/f/freezer.state", "THAWED\n");
    CHECK_FALSE(m.groups().frozen());
    m.write("sys/fs/cgroup/freezer/f/freezer.state", "FREEZING\n");
    CHECK(m.groups().frozen());
}

TEST_CASE("a group outside the mounts, and files of another format, set no limit") {
    const machine m;
    m.mounts(unified_mount);
    m.member("0::/../elsewhere\n");
    m.write("sys/fs/cgroup/memory.max", "1\n");
    CHECK(m.groups().chain(cgroup_controller::memory).folders.empty());
    CHECK_FALSE(m.groups().memory().has_value());
    m.member("0::/\n");
    m.write("sys/fs/cgroup/memory.max", "many\n");
    m.write("sys/fs/cgroup/cpu.max", "5\n");
    CHECK_FALSE(m.groups().memory().has_value());
    CHECK_FALSE(m.groups().cpu().has_value());
    m.member("nothing of the kind\n0:\n\n");
    m.mounts("30 22\n - \n1 2 3 4 - cgroup2\n");
    CHECK_FALSE(m.groups().memory().has_value());
    CHECK(m.groups().throttled_ns() == 0);
}
