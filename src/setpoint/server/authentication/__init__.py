"""Who somebody is: the users behind tokens, certificates and the wish to be taken for another."""
