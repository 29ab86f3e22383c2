#include "supervisor/engine/run_space.hpp"

#include <fmt/format.h>

#include "core/errors.hpp"

namespace carousel::supervisor {

std::unique_ptr<ipc::holder> space_of_run(const std::string& name, u32 mib, console& out) {
    try {
        return std::make_unique<ipc::holder>(name, u64{mib} << 20U, ipc::memory_when::on_demand);
    } catch (const config_error& e) {
        throw config_error(fmt::format(
            "{} (a running pipeline is also a space: choose another name with -p NAME)", e.what()));
    } catch (const error& e) {
        out.line(fmt::format("warning: programs can't open this run as a space: {}", e.what()));
        return nullptr;
    }
}

}  // namespace carousel::supervisor
