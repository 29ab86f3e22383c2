#pragma once
// Interprets the messages on the control socket (control/control_message.hpp). Stages send a hello and stay
// connected; so do viewers, which send a tap, and `carousel debug`. Clients send one request and get one
// reply.

#include <functional>
#include <string>
#include <utility>

#include "control/control_message.hpp"
#include "control/mapped_ring.hpp"
#include "control/request_message.hpp"
#include "control/trace_message.hpp"
#include "core/json.hpp"
#include "supervisor/engine/control_socket.hpp"
#include "supervisor/engine/ps_rows.hpp"

namespace carousel::supervisor {

class device_switch;
class live_parameters;
class run_rebuild;
class takeover;
class trace_control;
struct seat;

// Handles the requests of clients (control/request_message.hpp): carries each request out, or refuses it with
// the reason.

class commands {
public:
    commands(const ps_sources& ps, process_table& seats, live_parameters& parameters, block_custodian& block,
             run_phase& phase, run_rebuild& rebuild, device_switch& devices, trace_control& trace,
             std::function<void()> save)
        : ps_(ps),
          seats_(&seats),
          parameters_(&parameters),
          block_(&block),
          phase_(&phase),
          rebuild_(&rebuild),
          devices_(&devices),
          trace_(&trace),
          save_(std::move(save)) {}

    /// Carries the request out, and returns the answer or the refusal as JSON.
    [[nodiscard]] nlohmann::json answer(const nlohmann::json& message);

private:
    [[nodiscard]] run::parameter_state carry_out(const run::parameters_request& r) const;
    [[nodiscard]] run::parameter_state carry_out(const run::set_request& r);
    [[nodiscard]] run::verdict carry_out(const run::end_request& r);
    [[nodiscard]] run::verdict carry_out(const run::rebuild_request& r);
    [[nodiscard]] run::verdict carry_out(const run::device_request& r);
    [[nodiscard]] run::verdict carry_out(const run::seat_request& r);
    [[nodiscard]] run::verdict carry_out(const run::kill_request& r);
    [[nodiscard]] run::verdict carry_out(const run::inject_request& r);
    [[nodiscard]] run::verdict carry_out(const run::reload_request& r) const;
    [[nodiscard]] run::verdict carry_out(const run::continue_request& r) const;
    [[nodiscard]] run::ps_answer carry_out(const run::ps_request& r) const;
    [[nodiscard]] run::trace_answer carry_out(const run::trace_request& r);
    [[nodiscard]] run::trace_file_answer carry_out(const run::trace_file_request& r);
    [[nodiscard]] run::verdict on_seats(const std::string& name,
                                        const std::function<std::string(process_table&, seat&)>& act);

    ps_sources ps_;
    process_table* seats_;
    live_parameters* parameters_;
    block_custodian* block_;
    run_phase* phase_;
    run_rebuild* rebuild_;
    device_switch* devices_;
    trace_control* trace_;
    std::function<void()> save_;  ///< writes the state file if it is out of date
};

// Handles taps. A viewer requests the memory of a ring and joins the ring as a `latest` reader by itself. The
// supervisor only passes the memory to the viewer and frees the viewer's place in the ring when its
// connection closes (a killed viewer cannot do that).

class tap_leases {
public:
    tap_leases(const run_setup& setup, std::string run_id, const memory_store& memory, block_custodian& block)
        : setup_(&setup), run_id_(std::move(run_id)), memory_(&memory), block_(&block) {}

    /// Answers on the connection. Throws config_error if there is no such ring, shm_error if the ring's
    /// memory does not exist yet.
    void lease(connection& c, const run::tap_request& request);
    /// Called when the viewer's connection is closed.
    void release(const connection& c);
    /// To be called after a takeover: viewers' places in latest groups contain numbers that the dead
    /// supervisor assigned.
    void adopt();

private:
    const run_setup* setup_;
    std::string run_id_;
    const memory_store* memory_;
    block_custodian* block_;
    u32 taps_ = 0;  ///< number of the next viewer
};

class message_dispatch : public connection_handler {
public:
    message_dispatch(process_table& seats, const run_phase& phase, takeover& takeover, tap_leases& taps,
                     commands& commands, run_extensions& extensions)
        : seats_(&seats),
          phase_(&phase),
          takeover_(&takeover),
          taps_(&taps),
          commands_(&commands),
          extensions_(&extensions) {}

    void on_message(control_socket& from, connection& c, shm::message& m) override;
    void on_close(const connection& c) override;

private:
    /// A message, with the socket and the connection that it came from.
    struct arrival {
        control_socket& socket;
        connection& line;
        shm::message& message;
    };
    void receive(const arrival& a, const run::hello_message& hello);
    void receive(const arrival& a, const run::return_message& message);
    void receive(const arrival& a, const run::owner_message& message);
    void receive(const arrival& a, const run::tap_request& request);
    void receive(const arrival& a, const run::debug_request& request);
    void receive(const arrival& a, const run::ready_message&);
    void receive(const arrival& a, const run::detached_message&);
    void receive(const arrival& a, const run::left_message&);
    void receive(const arrival& a, const run::back_message&);
    /// Passes a request for another host to the extension for that host. Returns false if the request is for
    /// this host and was not passed on.
    [[nodiscard]] bool route_request(connection& c, const nlohmann::json& request);

    process_table* seats_;
    const run_phase* phase_;
    takeover* takeover_;
    tap_leases* taps_;
    commands* commands_;
    run_extensions* extensions_;
};

}  // namespace carousel::supervisor
