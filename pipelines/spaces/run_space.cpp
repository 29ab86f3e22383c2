// A running pipeline is also a space (a shared-memory segment, shared/ipc): programs open it by name and
// share primitives while the pipeline runs. Its supervisor is the holder, with the same code as `carousel
// hold`. Until the first client connects, the space consists of a lock, a listening socket and a folder; the
// memory is allocated for the first client.

#include <fmt/format.h>

#include "core/errors.hpp"
#include "ipc/holder.hpp"
#include "runs/spaces.hpp"
#include "spec/pipeline_file.hpp"
#include "supervisor/engine/run_extension.hpp"

namespace carousel::supervisor {
namespace {

class run_space final : public run_extension {
public:
    /// Throws config_error if another process holds a space of the run's name. Prints a warning if this
    /// machine cannot provide a space; the run continues without it.
    void prepare(const pipeline& p, console& out) override {
        try {
            holder_ =
                std::make_unique<ipc::holder>(p.name, u64{p.space_mib} << 20U, ipc::memory_when::on_demand);
        } catch (const config_error& e) {
            throw config_error(fmt::format(
                "{} (a running pipeline is also a space: choose another name with -p NAME)", e.what()));
        } catch (const error& e) {
            out.line(fmt::format("warning: programs can't open this run as a space: {}", e.what()));
        }
    }
    void attach(run_access& run) override {
        if (!holder_) return;
        loop_ = &run.loop();
        loop_->watch(holder_->events(), EPOLLIN, [this](u32) { holder_->run_once(0); });
    }
    void tick(u64) override {
        if (holder_) holder_->run_once(0);  // the holder may have paused accepting connections
    }
    void close() noexcept override {
        if (loop_ != nullptr && holder_) loop_->forget(holder_->events());
        loop_ = nullptr;
        holder_.reset();
    }

private:
    std::unique_ptr<ipc::holder> holder_;  ///< null: no space
    event_loop* loop_ = nullptr;           ///< null: not attached
};

}  // namespace

std::shared_ptr<run_extension> space_of_run() { return std::make_shared<run_space>(); }

}  // namespace carousel::supervisor
