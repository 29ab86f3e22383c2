#pragma once
// What the user has selected and opened on the screen of `carousel top`, and the effect of each key. No I/O:
// the caller carries out the effects (top.cpp), and screen.hpp shows the state.

#include <string>
#include <vector>

#include "os/terminal.hpp"
#include "top/top.hpp"

namespace carousel::supervisor {

class interaction {
public:
    enum class mode : u8 {
        table,         ///< stages and rings
        help,          ///< keys and legend, until any key is pressed
        actions,       ///< the actions of the selected stage, until one is chosen
        confirmation,  ///< one action, until it is confirmed or cancelled
        parameter,     ///< the user types KEY=VALUE
        text,          ///< output of a command, for example a stage's log
    };
    /// What the caller does after a key.
    struct effect {
        enum class kind : u8 {
            none,
            quit,
            refresh,     ///< polls the run at once
            command,     ///< runs a `carousel` command, and passes its result to finish()
            show_text,   ///< runs a `carousel` command whose output is shown while mode is text
            close_text,  ///< ends that command
        } what = kind::none;
        /// the command's words: its name, and its operands
        std::vector<std::string> words = {};
    };

    /// The rows that the screen shows. The selection stays on its stage; if that stage has no row any more,
    /// the first row is selected.
    void set_rows(std::vector<stage_row> rows);
    [[nodiscard]] effect press(int key);
    /// The result of the command that press() has requested.
    void finish(bool succeeded, const std::string& text);

    [[nodiscard]] mode now() const noexcept { return mode_; }
    /// Index of the selected row; 0 if there are no rows.
    [[nodiscard]] std::size_t selected() const noexcept;
    [[nodiscard]] const std::string& label() const noexcept { return label_; }
    /// The line that asks for a key or shows a result; "" if there is none.
    [[nodiscard]] std::string prompt() const;
    /// The last result is an error.
    [[nodiscard]] bool failed() const noexcept { return failed_; }
    /// Title of the text that is shown.
    [[nodiscard]] const std::string& title() const noexcept { return title_; }
    /// How many lines the text is scrolled up from its end. `most`: the highest possible number.
    [[nodiscard]] std::size_t scrolled(std::size_t most) noexcept;

private:
    struct action {
        char key;
        std::string name;  ///< of the command
        std::string text;  ///< in the line of actions
        bool asks = true;  ///< the user must confirm it
    };
    [[nodiscard]] std::vector<action> actions() const;
    /// An action is outstanding, and a second one would end it.
    [[nodiscard]] effect refuse_second();
    [[nodiscard]] effect choose(int key);
    [[nodiscard]] effect start(std::vector<std::string> words);
    [[nodiscard]] effect press_in_table(int key);
    [[nodiscard]] effect press_in_parameter(int key);
    [[nodiscard]] effect press_in_text(int key);
    [[nodiscard]] effect open_text(std::string title, std::vector<std::string> words);
    [[nodiscard]] bool move(int key);

    mode mode_ = mode::table;
    std::vector<stage_row> rows_;
    std::string label_;               ///< of the selected row
    std::vector<std::string> asked_;  ///< the command to be confirmed
    std::string question_;
    std::string typed_;    ///< of the parameter
    std::string running_;  ///< the command whose result is outstanding, as text; "": none
    std::string result_;
    bool failed_ = false;
    std::string title_;
    std::size_t scrolled_ = 0;
};

}  // namespace carousel::supervisor
