#include "stages/fragment/fragment.hpp"

int main(int argc, char** argv) { return carousel::stages::stage_main<carousel::stages::fragment>(argc, argv); }
