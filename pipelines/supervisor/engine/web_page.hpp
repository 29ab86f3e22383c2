#pragma once
// The page of `carousel run --http`: the program carousel-web as a child that lives with the run. It is no
// part of the run: it may die, hang or never come up, and the pipeline goes on; what became of it is said in
// the log. One thread; only the destructor waits, a second at most.

#include <string>

#include "os/event_loop.hpp"
#include "os/log_pipe.hpp"
#include "os/spawn.hpp"

namespace carousel::supervisor {

/// Path of carousel-web, beside this program. Throws config_error that says how to get it where it wasn't
/// built.
[[nodiscard]] std::string page_program();

class web_page {
public:
    /// `address`: as given to --http; `name`: of the run; `folder`: of its logs; `width`: of the labels
    /// before log lines.
    web_page(event_loop& loop, console& out, std::string address, std::string name, const std::string& folder,
             std::size_t width);
    /// Ends it.
    ~web_page();
    web_page(const web_page&) = delete;
    web_page& operator=(const web_page&) = delete;

    /// Never throws: a page that can't be started is a line in the log.
    void start() noexcept;
    /// Starts one anew that has died, a while after its death and a few times in a run.
    void tick(u64 now) noexcept;

private:
    void ended();

    event_loop& loop_;
    std::string address_, name_, token_;
    log_sink log_;
    log_pipe pipe_;
    spawned process_;
    u64 due_ns_ = 0;  ///< 0: nothing to start
    u32 starts_ = 0;
};

}  // namespace carousel::supervisor
