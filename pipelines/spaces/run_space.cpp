// The space of a running pipeline: its supervisor is the holder, with the same code as `carousel hold`.

#include <fmt/format.h>

#include "core/errors.hpp"
#include "ipc/holder.hpp"
#include "runs/spaces.hpp"

namespace carousel::supervisor {

namespace {

class held_by_supervisor final : public run_space {
public:
    held_by_supervisor(const std::string& name, u32 mib)
        : holder_(name, u64{mib} << 20U, ipc::memory_when::on_demand) {}
    [[nodiscard]] int events() const noexcept override { return holder_.events(); }
    void serve() override { holder_.run_once(0); }

private:
    ipc::holder holder_;
};

}  // namespace

std::unique_ptr<run_space> space_of_run(const std::string& name, u32 mib, console& out) {
    try {
        return std::make_unique<held_by_supervisor>(name, mib);
    } catch (const config_error& e) {
        throw config_error(fmt::format(
            "{} (a running pipeline is also a space: choose another name with -p NAME)", e.what()));
    } catch (const error& e) {
        out.line(fmt::format("warning: programs can't open this run as a space: {}", e.what()));
        return nullptr;
    }
}

}  // namespace carousel::supervisor
