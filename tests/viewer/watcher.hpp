#pragma once
// A viewer without a window, and a place where its runs are.

#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <thread>

#include "core/clock.hpp"
#include "tests/viewer/fake_run.hpp"
#include "viewer/session/picture_store.hpp"
#include "viewer/session/session.hpp"

namespace carousel::test {

/// A separate runtime directory.
struct place_of_runs {
    std::string path;
    place_of_runs() {
        char name[] = "/tmp/carousel-runs-XXXXXX";
        path = ::mkdtemp(name);
        ::setenv("XDG_RUNTIME_DIR", path.c_str(), 1);
    }
    ~place_of_runs() { std::filesystem::remove_all(path); }
};

/// A session and its model.
struct watcher {
    viewer::model m;
    std::unique_ptr<viewer::picture_store> store = viewer::make_null_store();
    viewer::session s;
    explicit watcher(const std::string& name = "") : s({.name = name}) {}
    explicit watcher(const viewer::session_options& o) : s(o) {}
    void step() {
        s.update(m, *store);
        s.handle_command(m);
    }
    /// Until `done` or 10 s have passed.
    bool until(const std::function<bool()>& done) {
        const u64 end = now_ns() + 10 * ns_per_s;
        while (now_ns() < end) {
            step();
            if (done()) return true;
            std::this_thread::sleep_for(std::chrono::milliseconds(5));
        }
        return false;
    }
};

}  // namespace carousel::test
