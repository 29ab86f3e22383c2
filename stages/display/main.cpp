#include "stages/display/display.hpp"

int main(int argc, char** argv) { return carousel::stages::stage_main<carousel::stages::display>(argc, argv); }
