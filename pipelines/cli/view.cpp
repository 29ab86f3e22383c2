// `carousel view`: becomes the page's program.

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>

#include "cli/cli.hpp"
#include "core/http_address.hpp"
#include "runs/client.hpp"
#include "supervisor/engine/web_page.hpp"

namespace carousel::supervisor {

int cli_view(const cli_arguments& a, const cli_environment& env) {
    (void)parse_http_address(a.http);
    const std::string program = page_program();
    // None runs: the page waits for one. Several do: here is the place to choose.
    if (a.pipeline.empty() && run::living_runs().size() > 1) (void)choose_pipeline(a.pipeline, 0);
    std::vector<std::string> words{program, "--http", a.http};
    if (!a.pipeline.empty()) words.insert(words.end(), {"-p", a.pipeline});
    std::vector<char*> pointers;
    for (std::string& w : words) pointers.push_back(w.data());
    pointers.push_back(nullptr);
    env.out.flush();
    ::execv(program.c_str(), pointers.data());
    throw config_error(fmt::format("starting {}: {}", program, errno_text(errno)));
}

}  // namespace carousel::supervisor
