package kerberos_test

import (
	"context"
	"log"
	"log/slog"

	"github.com/hdfsckpt/hdfsckpt/kerberos"
)

// A process logs in once, and affirms its login before each new connection.
func Example() {
	ctx := context.Background()
	session, err := kerberos.Login(ctx, kerberos.Options{
		Principal: "etl@EXAMPLE.COM",
		Keytab:    "/etc/security/etl.keytab",
		Logger:    slog.Default(),
	})
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = session.Close() }()

	if err := session.AffirmLogin(ctx); err != nil {
		log.Fatal(err)
	}
	service, err := kerberos.ServicePrincipal("nn/_HOST", "nn1.example.com")
	if err != nil {
		log.Fatal(err)
	}
	_, _, err = session.Client().GetServiceTicket(service)
	if err != nil {
		log.Fatal(err)
	}
}
