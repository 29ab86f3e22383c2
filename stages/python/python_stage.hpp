#pragma once
// A stage whose code is Python: the interface between the runner and the user's function.
//
//   runner (threads without the GIL)  ->  python_stage (takes the GIL)  ->  the function of the user's file
//
// The loop, the protocol, heartbeats and commits never take the GIL: a function that never releases the GIL,
// or another Python thread that holds the GIL, stops only this stage, and the timeout of the stage's frame
// ends the process.
//
// An error in a function is an error of the stage: it is reported in one sentence, and counts as an attempt
// on the frame. A function is in error if it raises, returns something or calls sys.exit, or if an array that
// it made from a plane outlives the call. The traceback is written to the log. If this was the last attempt
// on the frame, the frame's dead letter also contains the traceback.
//
// On the CPU the function does its work in process(), on the main thread. On a GPU the function enqueues its
// work. The current stream of torch and CuPy, if they are loaded, is the frame's stream. Work enqueued on any
// other stream of the process is joined into the frame's stream before SUBMITTED (streams.hpp).

#include <pybind11/pybind11.h>

#include <carousel/stage.hpp>

#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "stages/python/frame.hpp"

namespace carousel::python {

class python_stage final : public stage {
public:
    /// `adapter`: an object of carousel._stage.Adapter. The object is never released, because the stage
    /// exists as long as the process. Call with the GIL.
    explicit python_stage(py::object adapter);
    ~python_stage() override;
    python_stage(const python_stage&) = delete;
    python_stage& operator=(const python_stage&) = delete;
    [[nodiscard]] description configure(const configuration& with) override;
    void prepare(environment& env) override;
    void process(frame& f) override;
    [[nodiscard]] bool commits_on_host() const override { return finishes_; }
    void finish(frame& f) override;

private:
    void call(frame& f, py::handle function, bool enqueues);
    [[nodiscard]] py::tuple arguments(const std::shared_ptr<frame_object>& f) const;
    void join_streams(const lease& frame_lease);
    static void close(frame_object& f, const char* what);
    [[noreturn]] void fail(frame& f, py::error_already_set& e) const;

    py::handle adapter_, process_, finish_, frameworks_;
    bool finishes_;
    bool warned_ = false;
    std::string stage_;  ///< the stage's name in the pipeline file
    environment* env_ = nullptr;
    int gpu_ = -1;
    std::vector<std::string> inputs_;  ///< the producers' names
    bool writable_inputs_ = false;     ///< true if the stage has requested to write to its inputs
    bool has_state_ = false;
    std::vector<std::string> outputs_;  ///< names of the stage's outputs; "": an output without a name
    /// For each argument, its plane: ("input" or "output", the index of that input or output, the index of
    /// the plane), or ("frame", 0, 0).
    std::vector<std::tuple<std::string, std::size_t, std::size_t>> picks_;
    /// For each lane, the lease of its last frame; this frame is complete when the lane is used again.
    std::vector<std::shared_ptr<lease>> lanes_;
    std::vector<py::object> locals_;  ///< frame.local of the frame of each lane; null: not requested
};

/// Runs the stage program: `words` is the stage's command line. Returns its exit code.
int run_stage(const std::vector<std::string>& words, py::object adapter);

void bind_stage(py::module_& m);

}  // namespace carousel::python
